import { onPath } from "./programs.mjs";

/**
 * Paths of Prometheus and of promtool, with which the tests ask the dashboard's queries and judge the alerts.
 *
 * @param {string} [path] the PATH to search
 * @returns {{ prometheus: string, promtool: string }}
 * @throws {Error} one line: what is missing, and what to run
 */
export function prometheusPrograms(path = process.env.PATH ?? "") {
  const [prometheus, promtool] = ["prometheus", "promtool"].map((name) => onPath(name, path));
  if (prometheus !== undefined && promtool !== undefined) return { prometheus, promtool };
  const howTo = onPath("apt-get", path)
    ? "Run: sudo apt-get install -y --no-install-recommends prometheus"
    : "Install Prometheus 2.40 or later.";
  throw new Error(`prometheus and promtool are not on the PATH. ${howTo}`);
}
