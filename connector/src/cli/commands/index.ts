import type { CommandEntry } from "../command.ts";

export const COMMANDS: readonly CommandEntry[] = [
  { name: "keygen", summary: "Make a key for an agent.", load: async () => (await import("./keygen.ts")).keygen },
  {
    name: "init",
    summary: "Write an agent that works, with its test, to start from.",
    load: async () => (await import("./init.ts")).init,
  },
  {
    name: "check",
    summary: "Test key, clock and connection against a relay.",
    load: async () => (await import("./check.ts")).check,
  },
  {
    name: "listen",
    summary: "Keep an agent online and print what it receives.",
    load: async () => (await import("./listen.ts")).listen,
  },
  { name: "send", summary: "Send a message.", load: async () => (await import("./send.ts")).send },
  { name: "ask", summary: "Send a message, and print the reply.", load: async () => (await import("./ask.ts")).ask },
  {
    name: "request",
    summary: "Request a session with an agent.",
    load: async () => (await import("./request.ts")).request,
  },
  {
    name: "approve",
    summary: "Approve a session that another agent requested.",
    load: async () => (await import("./decisions.ts")).approve,
  },
  {
    name: "reject",
    summary: "Reject a session that another agent requested.",
    load: async () => (await import("./decisions.ts")).reject,
  },
  {
    name: "issuer",
    summary: "Make an issuer of credentials.",
    load: async () => (await import("./issuer.ts")).issuer,
  },
  {
    name: "issue",
    summary: "Sign a credential for the key of an agent.",
    load: async () => (await import("./issue.ts")).issue,
  },
  {
    name: "credential",
    summary: "Put a credential into a key file.",
    load: async () => (await import("./credential.ts")).credential,
  },
  {
    name: "inspect",
    summary: "Show what a credential says, and whether it holds.",
    load: async () => (await import("./inspect.ts")).inspect,
  },
  {
    name: "receipt",
    summary: "Print the receipt of a decided session.",
    load: async () => (await import("./receipt.ts")).receipt,
  },
  {
    name: "verify",
    summary: "Check the receipt of a session.",
    load: async () => (await import("./verify.ts")).verify,
  },
  { name: "status", summary: "Show who is online.", load: async () => (await import("./status.ts")).status },
  {
    name: "mcp",
    summary: "Offer the relay to a model as MCP tools.",
    load: async () => (await import("./mcp.ts")).mcp,
  },
  {
    name: "completion",
    summary: "Print a script that makes a shell complete commands.",
    load: async () => (await import("./completion.ts")).completionOf(COMMANDS),
  },
];
