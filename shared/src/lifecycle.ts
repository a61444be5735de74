import type { Logger } from "./logging.ts";
import { CONFIGURATION_EXIT_CODE, type Environment, SettingsError } from "./settings.ts";

/** Something that runs until it is told to stop. Constructors do no I/O. */
export interface Service {
  /** Resolves when the service does its work; rejects when it cannot. */
  start(): Promise<void>;
  /** Idempotent, and allowed at any time, a pending start included. */
  stop(): Promise<void>;
}

/** What `runService` needs of the process; each main.ts passes `process`. */
export interface Host {
  readonly env: Environment;
  readonly stderr: { write(text: string): unknown };
  on(event: string, listener: (reason: unknown) => void): unknown;
  exit(code: number): unknown;
}

/** A service and the log that its end is written to. */
export interface Runnable {
  readonly service: Service;
  readonly logger: Logger;
}

const EXIT_CODES = { SIGTERM: 143, SIGINT: 130 } as const;
/** Ctrl-C comes twice under npm, from the terminal and from npm itself: what follows so soon is the same signal. */
const SAME_SIGNAL_MS = 1000;

/**
 * Runs a service until SIGTERM or SIGINT. Exit codes: 0 stopped, 1 start or stop failed or a fault that nobody caught,
 * 78 settings at fault, 130 and 143 a second signal that comes a second later or more.
 * @param create makes the service from the environment; throws SettingsError.
 */
export async function runService(host: Host, create: (env: Environment) => Runnable): Promise<void> {
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
    // A start that a signal cut short is no failure: the stop decides the exit code.
    if (stoppingSince === null) crash("start failed")(err);
  }
}

function createOrExit(host: Host, create: (env: Environment) => Runnable): Runnable | null {
  try {
    return create(host.env);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    host.stderr.write(`${error.message}\n`);
    host.exit(CONFIGURATION_EXIT_CODE);
    return null;
  }
}
