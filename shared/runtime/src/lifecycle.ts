import type { Logger } from "./logging.ts";
import { CONFIGURATION_EXIT_CODE, type Environment, SettingsError } from "./settings.ts";

/** Something that runs until it is stopped. Constructors do no I/O. */
export interface Service {
  /** Resolves when the service is running; rejects when it cannot run, with a SettingsError when a setting is the reason. */
  start(): Promise<void>;
  /** Idempotent; may be called at any time, also while `start` is pending. */
  stop(): Promise<void>;
}

/** A start that failed for a reason that its message explains in full, to the operator. */
export class StartError extends Error {
  /** Of the system error behind it. */
  readonly code: string | undefined;

  constructor(message: string, cause: NodeJS.ErrnoException) {
    super(message, { cause });
    this.name = "StartError";
    this.code = cause.code;
  }
}

/** What `runService` needs of the process; each main.ts passes `process`. */
export interface ProcessLike {
  readonly env: Environment;
  readonly stderr: { write(text: string): unknown };
  on(event: string, listener: (reason: unknown) => void): unknown;
  exit(code: number): unknown;
}

/** A service and its log. */
interface Runnable {
  readonly service: Service;
  readonly logger: Logger;
}

const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const;
/** Under npm Ctrl-C sends the signal twice, from the terminal and from npm: within this time it counts as one. */
const SAME_SIGNAL_MS = 1000;

/**
 * Runs a service until SIGTERM or SIGINT. Exit codes: 0 stopped, 1 start or stop failed or an uncaught error, 78 invalid
 * settings, 130 and 143 a second signal at least a second after the first.
 * @param create makes the service from the environment; throws SettingsError.
 */
export async function runService(host: ProcessLike, create: (env: Environment) => Runnable): Promise<void> {
  const runnable = createOrExit(host, create);
  if (runnable === null) return;
  const { service, logger } = runnable;
  const crash = (text: string) => (err: unknown) => {
    logger.fatal({ err }, text);
    host.exit(1);
  };
  host.on("unhandledRejection", crash("unhandled rejection"));
  host.on("uncaughtException", crash("uncaught exception"));

  let stoppingSince: number | null = null;
  for (const [signal, code] of Object.entries(EXIT_CODES)) {
    host.on(signal, () => {
      if (stoppingSince !== null) {
        if (performance.now() - stoppingSince > SAME_SIGNAL_MS) host.exit(code);
        return;
      }
      stoppingSince = performance.now();
      logger.info({ signal }, "stopping");
      service.stop().then(() => host.exit(0), crash("stop failed"));
    });
  }

  try {
    await service.start();
    logger.info("started");
  } catch (err) {
    // A start that a signal interrupted has not failed: the stop decides on the exit code.
    if (stoppingSince !== null) return;
    if (err instanceof SettingsError) refuseSettings(host, err);
    else if (err instanceof StartError) refuse(host, err, 1);
    else crash("start failed")(err);
  }
}

function createOrExit(host: ProcessLike, create: (env: Environment) => Runnable): Runnable | null {
  try {
    return create(host.env);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    refuseSettings(host, error);
    return null;
  }
}

function refuseSettings(host: ProcessLike, error: SettingsError): void {
  refuse(host, error, CONFIGURATION_EXIT_CODE);
}

function refuse(host: ProcessLike, { message }: Error, code: number): void {
  host.stderr.write(`${message}\n`);
  host.exit(code);
}
