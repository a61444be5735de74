/**
 * The hash tag of each partition: its number and two letters, chosen for the slot that they give it. Of the 24 equal ranges of
 * slots each tag lies in the middle of another, and in this order, so that so many of the first tags as primaries divide lie
 * evenly over the ranges that `redis-cli --cluster create` gives these. A tag that changes moves its partition, the replay
 * guard included. Source: docs/redis.md#keys.
 */
export const PARTITION_TAGS = [
  ...["0qx", "1mq", "2zm", "3fd", "4qt", "5ni", "6xm", "7hq", "8tu", "9xe", "10ei", "11va"],
  ...["12qs", "13mz", "14cq", "15sm", "16rk", "17nb", "18te", "19xu", "20vy", "21tr", "22bv", "23nf"],
] as const;
