import { accessSync, constants } from "node:fs";
import { RelayError } from "../errors.ts";

/** Node reads it once, when a process starts. */
const VARIABLE = "NODE_EXTRA_CA_CERTS";
const UNSET = `${VARIABLE} is not set in this process's environment.`;
const WHERE =
  "Set that variable in the env member of the MCP configuration, or in the shell that runs the command, and start it again.";

interface Texts {
  readonly message: string;
  readonly hint: string;
}

/**
 * Adds to the texts about a certificate that is not trusted whether this process has NODE_EXTRA_CA_CERTS: an application of the
 * desktop starts `relay mcp` without the environment of a shell. Other texts stay as they are.
 */
export function withAuthorities({ message, hint }: Texts): Texts {
  // The library's hint names the variable where it can help.
  if (!hint.includes(VARIABLE) || message.includes(VARIABLE)) return { message, hint };
  return { message: `${message} ${stateOf(process.env[VARIABLE])}`, hint: `${hint} ${WHERE}` };
}

/** Node warns of a file that it cannot read, and goes on without it. */
function stateOf(file: string | undefined): string {
  if (!file) return UNSET;
  try {
    accessSync(file, constants.R_OK);
    return `${file}, which ${VARIABLE} names, does not vouch for that certificate.`;
  } catch (error) {
    return `${file}, which ${VARIABLE} names, cannot be read (${(error as NodeJS.ErrnoException).code}).`;
  }
}

/** The same of an error. */
export function errorWithAuthorities(error: RelayError): RelayError {
  const { message, hint } = withAuthorities(error);
  return message === error.message
    ? error
    : new RelayError(error.code, { ...error, message, hint, cause: error.cause });
}
