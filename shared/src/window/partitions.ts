/** Which partition an agent lies in. Source: design, "The Redis window"; Redis Cluster specification, "Hash tags". */

const POLYNOMIAL = 0x1021;

const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
  return crc & 0xffff;
});

/** CRC16 (XMODEM) of an ASCII text, as Redis Cluster computes it. */
export function crc16(text: string): number {
  let crc = 0;
  for (let index = 0; index < text.length; index += 1) {
    crc = ((crc << 8) ^ (TABLE[((crc >> 8) ^ text.charCodeAt(index)) & 0xff] as number)) & 0xffff;
  }
  return crc;
}

/** The partition of an agent: CRC16 of its id, modulo the number of partitions. */
export function partitionOf(agent: string, partitions: number): number {
  return partitions === 1 ? 0 : crc16(agent) % partitions;
}
