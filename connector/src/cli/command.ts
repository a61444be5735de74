import type { Io } from "./io.ts";

/** One command of `relay`. */
export interface Command {
  /** What `relay <command> --help` prints. */
  readonly help: string;
  /**
   * @param args the words after the command's name.
   * @returns the exit code; see exit-codes.ts.
   * @throws {Failure} or a RelayError, which is turned into one.
   */
  run(args: string[], io: Io): Promise<number>;
}

/** A line of `relay --help`. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** A module is loaded when its command is run: no command pays for the dependencies of another. */
  readonly load: () => Promise<Command>;
}
