import { fileURLToPath } from "node:url";
import { makePackages } from "./make.ts";

/** `npm run packages -- [folder]`: makes the packages that the relay hands out; RELAY_PACKAGES_DIR then names the folder. */
const folder = process.argv[2] ?? fileURLToPath(new URL("../../.local/packages", import.meta.url));
const { packages } = await makePackages(folder);
for (const { file, bytes } of packages) process.stdout.write(`${folder}/${file} ${bytes} bytes\n`);
