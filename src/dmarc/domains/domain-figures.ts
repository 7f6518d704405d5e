import { z } from "zod";
import { domainSchema } from "./domain-schemas.ts";

const count = z.int().nonnegative();

const figures = z.object({
  messages: count,
  aligned: count.meta({ description: "Passed DMARC." }),
  failing: count,
  aligned_percent: z.number().nullable().meta({ description: "One decimal; null when there are no messages." }),
});

/** What the reports of the last 30 UTC days say of a domain, today among them. */
const domainFiguresSchema = z
  .object({
    last_7_days: figures,
    last_30_days: figures,
    days: z
      .object({
        from: z.iso.date(),
        messages: z.array(count),
        failing: z.array(count),
      })
      .meta({ description: "One number for each of the 30 days, the oldest first: for a small chart." }),
  })
  .meta({ title: "DmarcDomainFigures" });
export type DomainFigures = Readonly<z.output<typeof domainFiguresSchema>>;

/** A domain with its figures, as the list shows it. */
const listedDomainSchema = domainSchema.extend({ figures: domainFiguresSchema }).meta({ title: "DmarcListedDomain" });

export const domainsSchema = z
  .object({ domains: z.array(listedDomainSchema), next_cursor: z.string().nullable() })
  .meta({ title: "DmarcDomainList" });

/** Reads the figures of domains by their numbers; every number asked for is among the answers. */
export type ReadFigures = (numbers: readonly number[]) => ReadonlyMap<number, DomainFigures>;
