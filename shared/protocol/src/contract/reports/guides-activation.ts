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
    current_bottleneck: Bottleneck.nullable().meta({ description: "Null: nothing is missing at the target." }),
    gate: HandoffGate,
    current_window: GuideWindow,
  }),
  connector_recovery: z.strictObject({
    needed: z.boolean().meta({ description: "The way goes on only once a connector is back." }),
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
