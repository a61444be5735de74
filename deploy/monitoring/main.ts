import { writeFile } from "node:fs/promises";
import { monitoringFiles } from "./make.ts";

/** `npm run monitoring`: writes the dashboard and the rules of Prometheus anew, after a change of a panel or of an alert. */
for (const [file, text] of await monitoringFiles()) await writeFile(file, text);
