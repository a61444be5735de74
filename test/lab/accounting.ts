import { readdirSync, readFileSync } from "node:fs";

/** What the kernel says of processes, from /proc: Linux only. Source: proc(5). */

/**
 * CPU time of a process so far, all threads that it has, user and system, in µs. Its own account, in /proc/<pid>/stat, has
 * steps of 10 ms: as much as Redis needs for 700 messages.
 */
function cpuMicros(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce((sum, thread) => sum + threadNanos(pid, thread), 0) / 1000;
}

/** The first number of schedstat is the time on a CPU. */
function threadNanos(pid: number, thread: string): number {
  return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ", 1)[0]);
}

/** Memory of a process that is in RAM, bytes. */
export function residentBytes(pid: number): number {
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
  return Number(kilobytes) * 1024;
}

/** What the kernel keeps for a TCP connection's end, beside its buffers, as /proc/slabinfo names it. */
const SOCKET_CACHES = /^(?:TCP|TCPv6|sock_inode_cache|filp|eventpoll_epi) +(\d+) +\d+ +(\d+)/gm;
const PAGE_BYTES = 4096;

/**
 * Kernel memory of all TCP sockets of the machine: the records that are in use, and what is buffered. NaN where the
 * process may not read it. Source: proc(5).
 */
export function socketBytes(): number {
  try {
    const records = readFileSync("/proc/slabinfo", "latin1").matchAll(SOCKET_CACHES);
    const [, pages] = /^TCP: .* mem (\d+)/m.exec(readFileSync("/proc/net/sockstat", "latin1")) ?? [];
    return [...records].reduce(
      (sum, [, count, bytes]) => sum + Number(count) * Number(bytes),
      Number(pages) * PAGE_BYTES,
    );
  } catch {
    return Number.NaN;
  }
}

/** Files and sockets that this process, and so its children, may have open. Node raises it to the hard limit. */
export function maxOpenFiles(): number {
  const [, soft = "0"] = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
  return soft === "unlimited" ? Number.POSITIVE_INFINITY : Number(soft);
}

/** Process ids by what the process does: `sending pod`, `redis`, … */
export type Pids = Readonly<Record<string, number>>;

/** The processes' CPU time at one instant. */
interface Instant {
  /** Monotonic ms. */
  readonly at: number;
  readonly cpu: Readonly<Record<string, number>>;
}

export function instant(pids: Pids): Instant {
  const cpu = Object.fromEntries(Object.entries(pids).map(([role, pid]) => [role, cpuMicros(pid)]));
  return { at: performance.now(), cpu };
}

/** Between two instants. */
export interface Span {
  readonly seconds: number;
  /** µs of CPU by role. */
  readonly cpu: Readonly<Record<string, number>>;
}

export function spanOf(from: Instant, to: Instant): Span {
  const cpu = Object.entries(to.cpu).map(([role, micros]) => [role, micros - (from.cpu[role] ?? 0)]);
  return { seconds: (to.at - from.at) / 1000, cpu: Object.fromEntries(cpu) };
}

/** µs of CPU by role of a span, without those of spans within it. */
export function cpuWithout(whole: Span, parts: readonly Span[]): Span["cpu"] {
  const left = (role: string, micros: number) => parts.reduce((sum, { cpu }) => sum - (cpu[role] ?? 0), micros);
  return Object.fromEntries(Object.entries(whole.cpu).map(([role, micros]) => [role, left(role, micros)]));
}

/** µs of CPU of all roles. */
export function totalCpu({ cpu }: Pick<Span, "cpu">): number {
  return Object.values(cpu).reduce((sum, micros) => sum + micros, 0);
}
