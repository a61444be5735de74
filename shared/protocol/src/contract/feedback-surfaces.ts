import { normalise, OTHER } from "./feedback-labels.ts";
import { SURFACES } from "./surfaces.ts";

/** Names of surfaces in feedback, in addition to the catalogue's operation ids and paths. */
const SURFACE_NAMES = ["websocket", "gateway", "connector", "docs", "home"] as const;

/** The labels of surfaces; paths count as the operation that they belong to. */
export const FEEDBACK_SURFACES: readonly string[] = [...new Set([...SURFACE_NAMES, ...Object.keys(SURFACES)])];

const SURFACE_LABELS: ReadonlyMap<string, string> = new Map([
  ...SURFACE_NAMES.map((name) => [name, name] as const),
  ...Object.entries(SURFACES).flatMap(([id, { path, aliases }]) =>
    [id, path, ...aliases].map((name) => [normalise(name), id] as const),
  ),
]);

/** The surface that feedback is about: an operation id, a name of the list, or `other`. */
export function surfaceLabelOf(text: string | undefined): string {
  return SURFACE_LABELS.get(normalise(text ?? "")) ?? OTHER;
}
