import type { Connector } from "../../connector.ts";
import type { RelayError } from "../../errors.ts";
import type { ConnectorState } from "../../types.ts";
import { errorWithAuthorities } from "../extra-authorities.ts";

/**
 * Calls `tell` with each state of the connector; with that of one that reaches no relay once more when it is known why, and from
 * then on with that `error`. @returns a function that ends it.
 */
export function onState(connector: Connector, tell: (state: ConnectorState) => void): () => void {
  let why: RelayError | undefined;
  const withWhy = (state: ConnectorState): ConnectorState => {
    const isUnreachable = state.status === "reconnecting" && state.reason === "unreachable";
    if (state.status === "closed" && state.error) return { ...state, error: errorWithAuthorities(state.error) };
    return isUnreachable && why !== undefined ? { error: why, ...state } : state;
  };
  const ends = [
    connector.on("state", (state) => {
      if (state.status === "online") why = undefined;
      tell(withWhy(state));
    }),
    connector.on("error", (error) => {
      if (error.code !== "unreachable" || connector.state.status !== "reconnecting") return;
      why = errorWithAuthorities(error);
      tell(withWhy(connector.state));
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
