/** A package without types of its own, as TypeScript sees it. */
declare module "cluster-key-slot" {
  /** CRC16 of a key, or of its hash tag, modulo 16384. */
  export default function slotOf(key: string): number;
}

/** The package as a whole loads every limiter that it has. */
declare module "rate-limiter-flexible/lib/RateLimiterRedis.js" {
  export { RateLimiterRedis as default } from "rate-limiter-flexible";
}
declare module "rate-limiter-flexible/lib/RateLimiterRes.js" {
  export { RateLimiterRes as default } from "rate-limiter-flexible";
}
