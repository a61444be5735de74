/** Types for a package that has none. */
declare module "cluster-key-slot" {
  /** CRC16 of a key, or of its hash tag, modulo 16384. */
  export default function slotOf(key: string): number;
}

/** Imports single limiters: the package as a whole loads all of them. */
declare module "rate-limiter-flexible/lib/RateLimiterRedis.js" {
  export { RateLimiterRedis as default } from "rate-limiter-flexible";
}
declare module "rate-limiter-flexible/lib/RateLimiterRes.js" {
  export { RateLimiterRes as default } from "rate-limiter-flexible";
}
