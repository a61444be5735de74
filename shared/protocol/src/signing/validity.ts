/** Valid from `from` (inclusive) until `until` (exclusive), Unix ms. */
export interface Validity {
  readonly from: number;
  readonly until: number;
}

/** Of a record of the keys file; without a bound it is infinite. */
export function validityOf(record: {
  readonly not_before?: string | undefined;
  readonly expires_at?: string | undefined;
}): Validity {
  return {
    from: record.not_before === undefined ? Number.NEGATIVE_INFINITY : Date.parse(record.not_before),
    until: record.expires_at === undefined ? Number.POSITIVE_INFINITY : Date.parse(record.expires_at),
  };
}

export function isValidAt(validity: Validity, now: number): boolean {
  return validity.from <= now && now < validity.until;
}
