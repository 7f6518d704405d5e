import { z } from "zod";
import { countField, nextCursorField } from "../../../foundation/http/schema-fields.ts";
import { domainSchema } from "./domain-schemas.ts";

const perDay = (description: string) => z.array(z.int().nonnegative()).meta({ description });

const figures = z.object({
  messages: countField("Messages in reports."),
  aligned: countField("Messages that passed DMARC."),
  failing: countField("Messages that failed DMARC."),
  aligned_percent: z
    .number()
    .nullable()
    .meta({ description: "Share of aligned messages in percent, with one decimal; null when there are no messages." }),
});

/** Message counts of a domain on the last 30 UTC days, including today. */
const domainFiguresSchema = z
  .object({
    last_7_days: figures.meta({ description: "The last seven days, including today." }),
    last_30_days: figures.meta({ description: "The last 30 days, including today." }),
    days: z
      .object({
        from: z.iso.date().meta({ description: "The first of the 30 days." }),
        messages: perDay("Messages of each day."),
        failing: perDay("Failing messages of each day."),
      })
      .meta({ description: "A number for each of the 30 days, the oldest first: for a small chart." }),
  })
  .meta({ title: "DmarcDomainFigures" });
export type DomainFigures = Readonly<z.output<typeof domainFiguresSchema>>;

/** A domain with its figures, as the list returns it. */
const listedDomainSchema = domainSchema.extend({ figures: domainFiguresSchema }).meta({ title: "DmarcListedDomain" });

export const domainsSchema = z
  .object({
    domains: z.array(listedDomainSchema).meta({ description: "The domains." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcDomainList" });

/** Reads the figures of domains by their numbers; the result has every given number. */
export type ReadFigures = (numbers: readonly number[]) => ReadonlyMap<number, DomainFigures>;
