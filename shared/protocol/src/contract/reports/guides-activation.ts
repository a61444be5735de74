import { z } from "zod";
import { PresenceRecovery } from "../presence.ts";
import { EconomicOperability } from "./common.ts";
import { GUIDE_FRAME, GuideWindow, HandoffGate, MinimumProof } from "./guides.ts";
import { ACTIVATION_STATUSES } from "./session-proof-retention.ts";
import { Bottleneck } from "./window.ts";

/** GET /api/public/activation-plan. */
export const ActivationPlan = z.strictObject({
  ...GUIDE_FRAME,
  readiness: z.strictObject({
    status: z.enum(ACTIVATION_STATUSES),
    current_bottleneck: Bottleneck.nullable().meta({
      description:
        "Of the way to a fresh proof. Null, of a target: its proof is fresh, wherever it is by now (gate.target_presence).",
    }),
    gate: HandoffGate,
    current_window: GuideWindow,
  }),
  connector_recovery: z.strictObject({
    needed: z.boolean().meta({
      description: "allowed_next_step waits for a connector. With a fresh proof it does not, wherever the target is.",
    }),
    hints: z.array(z.string()),
    ...PresenceRecovery.shape,
  }),
  minimum_viable_proof: z.array(MinimumProof),
  copy_paste_steps: z.array(
    z.strictObject({
      step: z.string(),
      command: z
        .string()
        .nullable()
        .meta({ description: "Null while what it needs is missing: parameters, or the target." }),
    }),
  ),
  economic_operability: EconomicOperability,
});
export type ActivationPlan = z.infer<typeof ActivationPlan>;
