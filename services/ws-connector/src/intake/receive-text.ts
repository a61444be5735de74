import type { Connection } from "../connection/connection.ts";
import { Intake, type IntakeDependencies } from "./intake.ts";
import { mayBeHeartbeat } from "./intake-batch.ts";

/**
 * Takes in one text frame; those of heartbeats wait for each other. Most connections are silent most of the time, and have no
 * intake then.
 */
export function receiveText(connection: Connection, text: string, dependencies: IntakeDependencies): void {
  const { batch } = dependencies;
  const cameAt = performance.now();
  const takeIn = () => {
    connection.intake ??= new Intake(connection, dependencies);
    connection.intake.receive(text, cameAt);
  };
  // One that is not registered has its turn now, and answers for all that is done in it.
  if (connection.principal === undefined) takeIn();
  else if (mayBeHeartbeat(text)) batch.add(takeIn);
  else {
    batch.flush();
    takeIn();
  }
}
