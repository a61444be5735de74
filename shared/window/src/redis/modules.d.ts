/** A package without types of its own, as TypeScript sees it. */
declare module "cluster-key-slot" {
  /** CRC16 of a key, or of its hash tag, modulo 16384. */
  export default function slotOf(key: string): number;
}
