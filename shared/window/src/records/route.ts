/**
 * The owner of a route: the first words of its record, `pod connection epoch seen_at since`, by which a release is compared.
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
