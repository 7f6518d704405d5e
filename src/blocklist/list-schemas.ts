import { z } from "zod";
import { CATEGORIES, CONFIDENCES, TARGET_KINDS } from "./lists/blocklist.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { delistUrl } from "./schemas.ts";

const text = (description: string) => z.string().meta({ description });
const textOrNull = (description: string) => z.string().nullable().meta({ description });

const listListingSchema = z.object({
  id: text("The id of the listing, as in `listed_on`."),
  name: text("The name of the listing."),
  meanings: z.array(z.string()).meta({ description: "What the return codes of the list mean." }),
  category: z.enum(CATEGORIES).meta({ description: "Why something is on this list." }),
  severity: z.enum(SEVERITIES).meta({ description: "How much it affects mail delivery." }),
});

const healthStateSchema = z
  .enum(["healthy", "refused", "silent", "wildcard", "unreachable", "unknown"])
  .meta({ description: "`healthy`: the test points respond as documented." });

const usageSchema = z.object({
  terms: text("Who may use the list."),
  volume: textOrNull("How many queries are allowed."),
  cost: textOrNull("What it costs."),
  registration: textOrNull("How to register."),
  url: textOrNull("The page with the terms."),
});

/** Response of `GET /v1/blacklist/lists`. */
export const listsSchema = z
  .object({
    version: text("The version of the catalogue."),
    lists: z
      .array(
        z
          .object({
            id: text("The id of the list."),
            name: text("The name of the list."),
            operator: text("Who operates it."),
            kinds: z.array(z.enum(TARGET_KINDS)).meta({ description: "What it has entries for." }),
            zone: textOrNull("The DNS zone; null if the list requires a key that is not set."),
            enabled: z.boolean().meta({ description: "Whether the list is queried." }),
            severity: z.enum(SEVERITIES).meta({ description: "The severity of its most severe listing." }),
            confidence: z.enum(CONFIDENCES).meta({
              description:
                "How reliable this data is: A verified recently, B documented by the operator, C from catalogues.",
            }),
            usage: usageSchema.nullable().meta({ description: "The operator's terms; null if none are published." }),
            listings: z.array(listListingSchema).meta({ description: "What the list can report, most severe first." }),
            delist_url: delistUrl,
            lookup_url: textOrNull("A page about one target, with the placeholder `{value}`."),
            notes: textOrNull("Further remarks."),
            health: z
              .array(
                z.object({
                  kind: z.enum(TARGET_KINDS).meta({ description: "The kind of target that was tested." }),
                  state: healthStateSchema,
                  reason: textOrNull("Why the list is not healthy."),
                  remedy: textOrNull("What the operator of this service can do."),
                  tested_at: z.iso
                    .datetime({ precision: 3 })
                    .nullable()
                    .meta({ description: "When the last test finished; null before the first." }),
                }),
              )
              .meta({ description: "Whether the list works through the resolver of this service." }),
          })
          .meta({ title: "Blacklist" }),
      )
      .meta({ description: "The lists." }),
  })
  .meta({ title: "BlacklistCatalogue" });
