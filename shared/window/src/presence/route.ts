/** Ends the record of a route whose connection is congested. */
export const CONGESTED = "!";

/**
 * The owner of a route: the first words of its record, `pod connection epoch seen_at since`, by which what is late is told.
 * Scripts alone read and write the whole record. Source: shared/window/src/lua/lib/route.lua.
 */
export interface RouteOwner {
  readonly pod: string;
  readonly connection: string;
  /** Null for whatever epoch. */
  readonly epoch: number | null;
}

export function formatRouteOwner({ pod, connection, epoch }: RouteOwner): string {
  return [pod, connection, ...(epoch === null ? [] : [epoch])].join(" ");
}
