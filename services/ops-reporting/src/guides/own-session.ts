import type { Target } from "relay-window/sessions/look-ups.ts";
import type { GuideContext } from "./guide-context.ts";

/**
 * The newest session of the asker with the target that its last proof or the retained ones name; none where the operator hides
 * identities, for asking with one id after the other would tell who asked whom. Pure. Source: docs/reports.md#one-target.
 */
export function newestSessionOf(
  { source, query, settings }: GuideContext,
  target: Target,
  requester = query.from,
): string | undefined {
  if (settings.proofIdentities === "hidden") return undefined;
  const proofs = [target.lastOnlineProof, ...source.proofs].filter(
    (proof) => proof?.requester === requester && proof?.target === target.agent,
  );
  // The target is read apart from the retained proofs, so either may be ahead.
  const [newest] = proofs.sort((one, other) => (other?.acceptedAt ?? 0) - (one?.acceptedAt ?? 0));
  return newest?.sessionId;
}

/** A newer session of the same requester, where the one that is named had to make room; undefined else. Pure. */
export function newerSessionOf(context: GuideContext): string | undefined {
  const { target, decision, allowed } = context.standing;
  if (target === null || decision !== "expired" || allowed === "ask_another_target") return undefined;
  const newest = newestSessionOf(context, target, target.session?.requester);
  return newest === context.query.session_id ? undefined : newest;
}
