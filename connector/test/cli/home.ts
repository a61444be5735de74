import os from "node:os";

/** The control sockets are below the home folder that the system has for the user, which no environment variable moves. */

const userInfo = os.userInfo;

/** In this process the user has another home folder, or its own again. */
export function setHome(homedir?: string): void {
  const moved = () => ({ ...userInfo(), homedir: homedir as string });
  Object.assign(os, { userInfo: homedir === undefined ? userInfo : moved });
}

/** Options of Node: the same for a process that begins. */
export function atHome(homedir: string): string[] {
  const script = `import os from "node:os"; const info = os.userInfo(); os.userInfo = () => ({ ...info, homedir: ${JSON.stringify(homedir)} });`;
  return ["--import", `data:text/javascript,${encodeURIComponent(script)}`];
}
