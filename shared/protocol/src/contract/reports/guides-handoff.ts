import { z } from "zod";
import { EconomicOperability } from "./common.ts";
import { GUIDE_FRAME, GuideStep, GuideWindow, HandoffGate, MinimumProof } from "./guides.ts";

/** The handoff from the relay's proof to the marketplace, an external system. */

const Marketplace = z
  .strictObject({
    external: z.literal(true),
    note: z.string(),
    first_job_handoff: z.string(),
    handoff_status: z.string(),
  })
  .meta({ id: "Marketplace" });

/** GET /api/public/ecosystem-handoff. */
export const EcosystemHandoff = z.strictObject({
  ...GUIDE_FRAME,
  relay_prerequisites: z.array(MinimumProof),
  proof_gate: HandoffGate,
  current_window: GuideWindow,
  marketplace: Marketplace,
});
export type EcosystemHandoff = z.infer<typeof EcosystemHandoff>;

/** GET /api/public/marketplace-first-job-handoff. */
export const MarketplaceFirstJobHandoff = z.strictObject({
  ...GUIDE_FRAME,
  proof_gate: HandoffGate,
  steps: z.array(
    z.strictObject({
      ...GuideStep.shape,
      where: z.enum(["relay", "marketplace"]),
      done: z.boolean().nullable().meta({ description: "Null where the relay does not know." }),
    }),
  ),
  marketplace: Marketplace,
  economic_operability: EconomicOperability,
});
export type MarketplaceFirstJobHandoff = z.infer<typeof MarketplaceFirstJobHandoff>;

/** GET /api/public/marketplace-handoff-status. */
export const MarketplaceHandoffStatus = z.strictObject({
  ...GUIDE_FRAME,
  ...HandoffGate.shape,
  next_step_url: z.string(),
  caveat: z.string(),
});
export type MarketplaceHandoffStatus = z.infer<typeof MarketplaceHandoffStatus>;
