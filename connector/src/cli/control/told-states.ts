import type { Connector } from "../../connector.ts";
import type { RelayError } from "../../errors.ts";
import type { ConnectorState } from "../../types.ts";
import { errorWithAuthorities } from "../extra-authorities.ts";

/**
 * Errors of attempts that reached no relay. Where its websocket answers and something else does over HTTP, it registers nobody, and
 * the connection is lost again and again.
 */
export const NO_RELAY_REACHED: readonly string[] = ["unreachable", "not_a_relay"];

/**
 * Calls `tell` with each state of the connector; with that of one that reaches no relay once more when it is known why, and from
 * then on with that `error`. @returns a function that ends it.
 */
export function onState(connector: Connector, tell: (state: ConnectorState) => void): () => void {
  let why: RelayError | undefined;
  const withWhy = (state: ConnectorState): ConnectorState => {
    const isUnreachable =
      state.status === "reconnecting" && (state.reason === "unreachable" || why?.code === "not_a_relay");
    if (state.status === "closed" && state.error) return { ...state, error: errorWithAuthorities(state.error) };
    return isUnreachable && why !== undefined ? { error: why, ...state } : state;
  };
  const ends = [
    connector.on("state", (state) => {
      if (state.status === "online") why = undefined;
      tell(withWhy(state));
    }),
    connector.on("error", (error) => {
      const { status } = connector.state;
      if (!NO_RELAY_REACHED.includes(error.code) || status === "online" || status === "closed") return;
      why = errorWithAuthorities(error);
      if (status === "reconnecting") tell(withWhy(connector.state));
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
