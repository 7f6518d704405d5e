import {
  flagField,
  integerField,
  nullableText,
  nullableTime,
  textField,
  timeField,
  labelSchema,
  enumField,
  idField,
  listField,
  namedBody,
  namedResponse,
  nullableEnum,
  nullableId,
  nullableInteger,
  optionalFlag,
  textsField,
} from "../foundation/http/schema-fields.ts";
import { z } from "zod";
import { CATEGORIES, TARGET_KINDS, type Blocklist, severityRankOf } from "./lists/blocklist.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { recipientsSchema } from "../foundation/mail/recipients.ts";
import { targetCheckSchema } from "./check-result.ts";
import { type SeverityPosition, TARGET_STATUSES, type TargetFilters } from "./store.ts";
import { AppError } from "../foundation/base/errors.ts";
import { nearestName } from "../foundation/base/nearest.ts";
import { isId } from "../foundation/base/secrets.ts";
import { unknownListMessage } from "./muting.ts";

const TARGET_CHARACTERS_MAX = 320;
const MUTED_LISTS_MAX = 200;
const RECIPIENTS_MAX = 10;
const NOTE_CHARACTERS_MAX = 1_000;
const LIST_CHARACTERS_MAX = 100;

const characters = (text: string) => [...text].length;

const label = labelSchema("outbound 1");
const labelOrNull = label.nullable().optional();

const targetText = z
  .string()
  .trim()
  .min(1, "A domain or an IP address is needed")
  .refine((text) => characters(text) <= TARGET_CHARACTERS_MAX, `At most ${TARGET_CHARACTERS_MAX} characters`);

const recipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description: "Receive mail about listings and delistings of the target, in addition to those of the account.",
});

const alertSeverityMin = nullableEnum(
  SEVERITIES,
  "Listings of a lower severity are not sent; they remain in the history and the event feed. Null: the setting of the account (`GET /v1/notifications`).",
);

/** Body of `POST /v1/blacklist/targets`. */
export const newTargetSchema = (webhookUrl: z.ZodType<string, string>) =>
  namedBody("BlacklistTargetOrder", {
    target: targetText.meta({
      description:
        "A domain below a public suffix, a public IPv4 or IPv6 address, or a range of up to 1,024 IPv4 addresses: `198.51.100.0/24` or `198.51.100.1-198.51.100.9`.",
      examples: ["example.com"],
    }),
    label: labelOrNull,
    monitoring_enabled: optionalFlag("Whether scheduled checks run. Default: true."),
    webhook_url: webhookUrl
      .nullable()
      .optional()
      .meta({ description: "Receives the events of this target, in addition to the webhook of the account." }),
    recipients: recipients.optional(),
    alert_severity_min: alertSeverityMin.optional(),
  });

/** Body of `PATCH /v1/blacklist/targets/{id}`: only given fields change; null removes. */
export const targetChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  namedBody("BlacklistTargetChange", {
    label: labelOrNull,
    monitoring_enabled: optionalFlag("False pauses the scheduled checks; the history is kept."),
    webhook_url: webhookUrl
      .nullable()
      .optional()
      .meta({ description: "Receives the events of this target; null removes it." }),
    recipients: recipients.optional(),
    alert_severity_min: alertSeverityMin.optional(),
    muted_lists: z.array(z.string()).max(MUTED_LISTS_MAX).optional().meta({
      description:
        "Ids of lists (`spamhaus-zen`), which are not queried for this target, or of single listings as in `listed_on` (`spamhaus-pbl`), which are ignored. Ids that are no longer in the catalogue can stay.",
    }),
  });

const only = (what: string) => ({ description: `Only targets ${what}.` });

/** The filters of the list of targets. */
export const TARGET_FILTERS = {
  status: z
    .enum(TARGET_STATUSES)
    .optional()
    .meta(only("of this status. `listed` includes targets that are `unknown` now and were listed before")),
  severity: z.enum(SEVERITIES).optional().meta(only("with a listing of this severity or higher")),
  list: z
    .string()
    .min(1)
    .max(LIST_CHARACTERS_MAX)
    .optional()
    .meta(only("with this listing, or with any listing of this list")),
  kind: z.enum(TARGET_KINDS).optional().meta(only("of this kind")),
  target: targetText.optional().meta({ description: "Only this domain or address, in any spelling." }),
  monitoring_enabled: z
    .enum(["true", "false"])
    .transform((text) => text === "true")
    .optional()
    .meta({ ...only("that are, or are not, monitored"), type: "boolean" }),
  label: z.string().min(1).optional().meta(only("with exactly this label")),
  sort: z.enum(["created", "severity"]).default("created").meta({
    description: "`created`: newest first; `severity`: most severe first. A cursor is valid for one order only.",
  }),
};

/** Body of `PATCH /v1/blacklist/targets/{id}/listings/{listing}`: only given fields change. */
export const listingNotesSchema = namedBody("BlacklistListingNotes", {
  acknowledged: optionalFlag("The listing is known and needs no action. False removes the mark."),
  delisting_requested: optionalFlag("The delisting was requested. False removes the mark."),
  note: z
    .string()
    .min(1, "Must not be empty: null removes it")
    .refine((text) => characters(text) <= NOTE_CHARACTERS_MAX, `At most ${NOTE_CHARACTERS_MAX} characters`)
    .nullable()
    .optional()
    .meta({ description: "Free text of up to 1,000 characters; null removes it." }),
});

const mark = (description: string) =>
  z
    .object({
      at: timeField("When the mark was set."),
      by: nullableText("The name of the key that set it."),
    })
    .nullable()
    .meta({ description });

export const delistUrl = nullableText("The list's page for delisting requests; null if there is none.");

export const targetListingSchema = namedResponse("BlacklistTargetListing", {
  id: textField("The id of the listing, as in `listed_on`."),
  list: nullableText("The id of the list; null if it is no longer in the catalogue."),
  name: textField("The name of the listing."),
  severity: nullableEnum(SEVERITIES, "How much it affects mail delivery."),
  category: nullableEnum(CATEGORIES, "Why something is on this list."),
  meaning: textField("What the listing means, as a sentence."),
  address: nullableText("The listed address of a range; null for other targets."),
  since: timeField("When the listing was first seen."),
  last_seen_at: timeField("When the list last confirmed it. It remains listed while the list does not respond."),
  delist_url: delistUrl,
  acknowledged: mark("Set when the listing was acknowledged."),
  delisting_requested: mark("Set when the delisting was requested."),
  note: z
    .object({
      text: textField("The note."),
      at: timeField("When the note was written."),
      by: nullableText("The name of the key that wrote it."),
    })
    .nullable()
    .meta({ description: "A note about the listing." }),
});

export const targetSchema = namedResponse("BlacklistTarget", {
  id: idField("The id of the target."),
  kind: enumField(TARGET_KINDS, "What the target is. Ranges are `ipv4`."),
  value: textField("The normalized target, as the lists are queried for it; of a range, its network or its two ends."),
  members: nullableInteger("How many addresses a range has; null for other targets."),
  range_id: nullableId("The id of the range that an address belongs to."),
  label: nullableText("Free text of your own."),
  status: enumField(
    TARGET_STATUSES,
    "`pending` before the first check; `unknown` when no list responded. A range has the worst status of its addresses.",
  ),
  severity: nullableEnum(SEVERITIES, "The severity of the most severe listing; null when there is none."),
  monitoring_enabled: flagField("Whether scheduled checks run."),
  listings: listField(
    targetListingSchema,
    "The listings, most severe first; of a range, the first 100 of its addresses.",
  ),
  listings_count: integerField("How many listings there are."),
  seen_at: nullableTime("When a list last confirmed one of these listings; unchanged while the lists do not respond."),
  listed_on: textsField("The ids of the known listings. A list that does not respond keeps its last ones."),
  muted_lists: textsField("Ids of lists and listings that are ignored."),
  last_checked_at: nullableTime("When the last check finished; null before the first."),
  next_check_at: timeField("When the next check is due. While paused: when it would be due if resumed now."),
  webhook_configured: flagField(
    "Whether events are sent; false also after the receiver responded 410, until the URL is set again.",
  ),
  recipients: textsField("Recipients of alert mail about this target."),
  alert_severity_min: nullableEnum(
    SEVERITIES,
    "Listings of a lower severity are not sent; null: the setting of the account.",
  ),
  created_at: timeField("When the target was added."),
});

export const TARGET_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  kind: "ipv4",
  value: "192.0.2.1",
  members: null,
  range_id: null,
  label: "outbound 1",
  status: "listed",
  severity: "critical",
  monitoring_enabled: true,
  listed_on: ["spamhaus-sbl"],
  listings: [
    {
      id: "spamhaus-sbl",
      list: "spamhaus-zen",
      name: "Spamhaus SBL",
      severity: "critical",
      category: "spam",
      meaning: "Listed manually as a sender or supporter of spam.",
      address: null,
      since: "2025-12-31T18:00:02.310Z",
      last_seen_at: "2026-01-01T00:00:03.120Z",
      delist_url: "https://check.spamhaus.org/",
      acknowledged: null,
      delisting_requested: { at: "2025-12-31T19:12:40.000Z", by: "ops" },
      note: null,
    },
  ],
  listings_count: 1,
  seen_at: "2026-01-01T00:00:03.120Z",
  muted_lists: [],
  last_checked_at: "2026-01-01T00:00:03.120Z",
  next_check_at: "2026-01-01T01:01:12.480Z",
  webhook_configured: true,
  recipients: [],
  alert_severity_min: null,
  created_at: "2025-12-31T23:59:41.005Z",
};

export const MEMBER_EXAMPLE = { ...TARGET_EXAMPLE, range_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60" };

const cursor = nullableText("Pass it as `cursor` for the next page; null on the last.");

export const targetsSchema = namedResponse("BlacklistTargetList", {
  targets: listField(targetSchema, "The targets."),
  next_cursor: cursor,
});

export const membersSchema = namedResponse("BlacklistMemberList", {
  members: listField(targetSchema, "The addresses, each a target."),
  next_cursor: cursor,
});

export const checkedSchema = namedResponse("BlacklistCheckedTarget", {
  target: targetSchema.meta({ description: "The target after the check, or as it is now." }),
  check: targetCheckSchema.meta({ description: "The check." }),
});

export const checksSchema = namedResponse("BlacklistCheckList", {
  checks: listField(targetCheckSchema, "The checks."),
  next_cursor: cursor,
});

/** The position of a target as a cursor: `rank.id`. */
export const severityCursor = ({ severityRank, id }: SeverityPosition): string => `${severityRank}.${id}`;

/** Whether a text can be such a cursor. */
const isSeverityCursor = (text: string) => /^[0-5]\./.test(text) && isId(text.slice(2));

export const positionOfCursor = (cursor: string): SeverityPosition => ({
  severityRank: Number(cursor[0]),
  id: cursor.slice(2),
});

/** Whether a text can be a cursor of targets: an id; in the order by severity, a rank and an id. */
export const isTargetCursor = (text: string): boolean => isId(text) || isSeverityCursor(text);

/** Throws `Invalid cursor` for a cursor of the other order. */
export const refuseOtherCursor = (after: string | null, sort: "created" | "severity"): void => {
  if (after !== null && isSeverityCursor(after) !== (sort === "severity")) throw new AppError("Invalid cursor");
};

/** The listings with this id, or all listings of the list with this id. Throws `Invalid query` for an unknown id. */
const listingsNamed = (id: string, lists: readonly Blocklist[]): readonly string[] => {
  const ids = lists.flatMap((list) =>
    [...new Set(list.codes.map((code) => code.id))].map((listing) => ({ list: list.id, listing })),
  );
  const named = ids.filter(({ list, listing }) => list === id || listing === id).map(({ listing }) => listing);
  if (named.length > 0) return named;
  const near = nearestName(id, new Set(ids.flatMap(({ list, listing }) => [list, listing])));
  throw new AppError("Invalid query", { issues: [{ path: "list", message: unknownListMessage(near) }] });
};

type TargetQuery = Partial<Omit<z.output<z.ZodObject<typeof TARGET_FILTERS>>, "sort">>;

/** The filters of a query, for the store. `lists`: the whole catalogue of the caller's mode. */
export const readTargetFilters = (
  { target: value, monitoring_enabled: monitoringEnabled, severity, list, ...rest }: TargetQuery,
  lists: readonly Blocklist[],
): TargetFilters => ({
  ...rest,
  value,
  monitoringEnabled,
  severityRankMin: severity === undefined ? undefined : severityRankOf(severity),
  listings: list === undefined ? undefined : listingsNamed(list, lists),
});
