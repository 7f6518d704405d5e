import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { discoverAndAdd } from "../../blocklist/discovery.ts";
import type { AddOutcome, NewTarget } from "../../blocklist/targets.ts";
import { hostOfWebUrl } from "../../foundation/mail/domain.ts";
import { countText, numberText, percentText } from "../components/figures.tsx";
import { formAction, page, flag, listOf } from "../page.ts";
import { type FormState, type View, type Viewer, redirectTo } from "../visit.ts";
import { settingsFields, type Settings, SettingsFields, type BlocklistUseCases } from "./common.tsx";
import type { KeyMode } from "../../foundation/base/secrets.ts";
import type { CheckCost, ListCost, TargetCounts } from "../../blocklist/list-status.ts";
import type { TargetKind } from "../../blocklist/lists/blocklist.ts";
import { parseTargetOrRange } from "../../blocklist/parse-target.ts";
import { Button, CheckField, Field, PostForm, TextAreaField } from "../components/form.tsx";
import { Callout, Columns, PageHead, Panel } from "../components/panel.tsx";

const TEXT_CHARACTERS_MAX = 500_000;
const LINES_MAX = 10_000;
const FOUND_MAX = 600;
const TARGET_CHARACTERS_MAX = 320;

const NOTHING_READ = { valid: [], problems: [], hasRange: false, counts: {} };
/** From this number of targets on, the queries that they take are shown before they are added. */
const COST_SHOWN_FROM = 100;
const LISTS_SHOWN = 5;

const newView = (props: Partial<NewPageProps>): View => ({
  title: "Add targets",
  section: "blocklists",
  body: <NewPage {...{ values: {}, read: NOTHING_READ, cost: null, found: [], unknown: null, ...props }} />,
});

const textIn = (values: FormState["values"], name: string): string => {
  const value = values[name];
  return typeof value === "string" ? value : "";
};

const issue = (path: string, message: string) => new AppError("Invalid request body", { issues: [{ path, message }] });

/** New targets: pasted or found. */
export const newTargetPages = (useCases: BlocklistUseCases) => {
  const form = z.object({
    targets: z
      .string()
      .trim()
      .min(1, "A domain or an IP address is needed")
      .max(TEXT_CHARACTERS_MAX, "This is too much at once: send it in parts"),
    ...settingsFields(useCases.rules),
    confirmed: z.string().optional(),
    only_valid: z.string().optional(),
  });
  return [
    page({ path: NEW_PATH }, () => newView({})),

    formAction({ path: NEW_PATH, form }, ({ viewer, form: given }) => addPasted(useCases, viewer, given), {
      rerender: ({ viewer, values }) => newView({ values, read: readTargets(textIn(values, "targets"), viewer.mode) }),
    }),

    discoverAction(useCases),
    foundAction(useCases),
  ];
};

type PastedForm = z.output<z.ZodObject<ReturnType<typeof settingsFields>>> & {
  readonly targets: string;
  readonly confirmed?: string | undefined;
  readonly only_valid?: string | undefined;
};

/** Adds what was pasted. Nothing is added while a line is wrong, or before a range is confirmed. */
const addPasted = async (useCases: BlocklistUseCases, viewer: Viewer, form: PastedForm): Promise<View | Response> => {
  const { label, alert_severity_min: alertSeverityMin, webhook_url: webhookUrl, recipients } = form;
  const read = readTargets(form.targets, viewer.mode);
  if (read.valid.length > LINES_MAX) throw issue("targets", `At most ${LINES_MAX.toLocaleString("en")} lines at once`);
  if (read.problems.length > 0 && (form.only_valid === undefined || read.valid.length === 0))
    throw issue("targets", "Nothing was added yet: see the lines below");
  const isMany = read.hasRange || read.valid.length >= COST_SHOWN_FROM;
  if (isMany && form.confirmed === undefined) {
    const cost = useCases.statuses.costOf(viewer.caller, read.counts);
    const values = {
      targets: read.valid.join("\n"),
      label: label ?? "",
      alert_severity_min: alertSeverityMin ?? "",
      webhook_url: webhookUrl ?? "",
      recipients: recipients.join(", "),
    };
    return newView({ values, cost });
  }
  const settings = { label, alertSeverityMin, webhookUrl, recipients, monitoringEnabled: true };
  const wanted = read.valid.map((target): NewTarget => ({ target, ...settings }));
  return added(viewer, await useCases.targets.addMany(viewer.caller, wanted));
};

/** Leads to the target, or to all of them, with what happened. */
const added = (viewer: Viewer, outcomes: readonly AddOutcome[]): Response => {
  const count = (status: AddOutcome["status"]) => outcomes.filter((outcome) => outcome.status === status).length;
  const refused = outcomes.find((outcome) => outcome.status === "invalid");
  const [first] = outcomes;
  const parts = [
    `${countText(count("created"), "target")} added.`,
    count("exists") === 0 ? null : `${countText(count("exists"), "target")} already monitored.`,
  ].filter((text) => text !== null);
  if (refused !== undefined)
    return redirectTo(viewer, "/blocklists?sort=newest", {
      bad: `${parts.join(" ")} ${countText(count("invalid"), "target")} not added: ${refused.problem}`,
    });
  if (outcomes.length === 1 && first !== undefined && first.status !== "invalid") {
    const ok = first.status === "created" ? "Added. The first check runs within a minute." : "It is already monitored.";
    return redirectTo(viewer, `/blocklists/${first.target.id}`, { ok });
  }
  return redirectTo(viewer, "/blocklists?sort=newest", { ok: parts.join(" ") });
};

const domainText = z.string().trim().max(TARGET_CHARACTERS_MAX).default("");

const discoverAction = ({ discovery, targets }: BlocklistUseCases) =>
  formAction(
    {
      path: DISCOVER_PATH,
      form: z.object({ domain: domainText, dmarc_domain: domainText, egress: flag }),
    },
    async ({ viewer, form: { domain, dmarc_domain, egress } }) => {
      if (domain === "" && dmarc_domain === "" && !egress)
        throw issue("domain", "Enter a domain, or choose the addresses of this service");
      const given = Object.entries({ domain, dmarc_domain }).filter(([, text]) => text !== "");
      const request = { ...Object.fromEntries(given), egress, dry_run: true };
      const { found, unknown } = await discoverAndAdd({ discovery, targets }, viewer.caller, request);
      return newView({ found, unknown, values: { domain, dmarc_domain, egress: egress ? "on" : "" } });
    },
    { rerender: ({ values }) => newView({ values }) },
  );

const foundAction = ({ targets }: BlocklistUseCases) =>
  formAction(
    {
      path: "/blocklists/found",
      form: z.object({
        found: listOf(z.string().max(TARGET_CHARACTERS_MAX)).pipe(z.array(z.string()).max(FOUND_MAX)),
        label: z.string().trim().max(200).default(""),
      }),
    },
    async ({ viewer, form: { found, label } }) => {
      if (found.length === 0) return redirectTo(viewer, NEW_PATH, { bad: "Choose at least one target." });
      const settings = { label: label === "" ? null : label, alertSeverityMin: null, webhookUrl: null, recipients: [] };
      const wanted = found.map((target): NewTarget => ({ target, ...settings, monitoringEnabled: true }));
      return added(viewer, await targets.addMany(viewer.caller, wanted));
    },
  );

/** A line that is no target. */
interface InvalidLine {
  readonly line: number;
  readonly given: string;
  readonly problem: string;
}

/** What was pasted, read line by line. */
interface ReadTargets {
  readonly valid: readonly string[];
  readonly problems: readonly InvalidLine[];
  readonly hasRange: boolean;
  /** Targets and addresses of ranges by kind. */
  readonly counts: TargetCounts;
}

const SHOWN_CHARACTERS_MAX = 100;
const PROBLEMS_SHOWN_MAX = 50;

/** Reads targets, one a line; empty lines are skipped. */
const readTargets = (text: string, mode: KeyMode): ReadTargets => {
  const valid: string[] = [];
  const problems: InvalidLine[] = [];
  const counts: Partial<Record<TargetKind, number>> = {};
  let hasRange = false;
  for (const [at, raw] of text.split(/\r\n|\r|\n/).entries()) {
    const given = hostOfWebUrl(raw.trim());
    if (given === "") continue;
    const parsed = parseTargetOrRange(given, mode);
    if (!parsed.ok) {
      problems.push({ line: at + 1, given: given.slice(0, SHOWN_CHARACTERS_MAX), problem: parsed.error });
      continue;
    }
    const { kind, addresses } = parsed.value;
    valid.push(given);
    counts[kind] = (counts[kind] ?? 0) + (addresses?.length ?? 1);
    hasRange ||= addresses !== null;
  }
  return { valid, problems, hasRange, counts };
};

/** A candidate that was found for a domain or for this service. */
interface FoundTarget {
  readonly target: string;
  readonly source: string;
}

interface NewPageProps {
  readonly values: FormState["values"];
  readonly read: ReadTargets;
  /** Set when ranges or many targets wait for a confirmation. */
  readonly cost: CheckCost | null;
  readonly found: readonly FoundTarget[];
  /** What could not be found out, as sentences; null before the search. */
  readonly unknown: readonly string[] | null;
}

const NEW_PATH = "/blocklists/new";
const DISCOVER_PATH = "/blocklists/discover";

const textOf = (values: FormState["values"], name: string): string | null => {
  const value = values[name];
  return typeof value === "string" && value !== "" ? value : null;
};

/** Adds targets: pasted, or found for a domain. */
const NewPage = (props: NewPageProps) => (
  <>
    <PageHead title="Add targets" crumbs={[["Blocklists", "/blocklists"]]} />
    {props.unknown !== null && <Found {...props} />}
    <Columns side={<Discover {...props} />}>
      <Panel title="Domains, addresses and ranges">
        <AddForm {...props} />
      </Panel>
    </Columns>
  </>
);

const AddForm = ({ values, read, cost }: NewPageProps) => {
  const settings: Partial<Settings> = {
    label: textOf(values, "label"),
    webhook_url: textOf(values, "webhook_url"),
    alert_severity_min: textOf(values, "alert_severity_min"),
    recipients: textOf(values, "recipients") ?? "",
  };
  return (
    <PostForm action={NEW_PATH} class="form">
      <TextAreaField
        name="targets"
        label="One a line"
        value={textOf(values, "targets")}
        placeholder={"example.com\n192.0.2.1\n2001:db8::1\n198.51.100.0/24"}
        rows={8}
        isMono
        isRequired
        hint="Up to 10,000 lines. A range has at most 1,024 IPv4 addresses: 198.51.100.0/24 or 198.51.100.1-198.51.100.9."
      />
      <Problems read={read} />
      {cost !== null && <Cost cost={cost} />}
      <SettingsFields settings={settings} />
      <div class="actions">
        <Button kind="main" icon="plus">
          Add
        </Button>
      </div>
    </PostForm>
  );
};

/** Each line that is wrong, and a way to add the others. */
const Problems = ({ read: { valid, problems } }: Pick<NewPageProps, "read">) => {
  if (problems.length === 0) return null;
  return (
    <Callout kind="bad" title={`${countText(problems.length, "line")} cannot be added`}>
      <ul class="names">
        {problems.slice(0, PROBLEMS_SHOWN_MAX).map(({ line, given, problem }) => (
          <li key={line}>
            Line {line}, <span class="mono">{given}</span>: {problem}
          </li>
        ))}
        {problems.length > PROBLEMS_SHOWN_MAX && <li>and {problems.length - PROBLEMS_SHOWN_MAX} more</li>}
      </ul>
      {valid.length > 0 && (
        <div class="actions">
          <Button name="only_valid" value="yes">
            Add the other {countText(valid.length, "line")}
          </Button>
        </div>
      )}
    </Callout>
  );
};

/** What the targets take of each list, before they are added. */
const Cost = ({ cost: { targets, queriesPerDay, lists } }: { readonly cost: CheckCost }) => {
  const over = lists.filter(({ share }) => share > 1);
  const [shown, others] = [lists.slice(0, LISTS_SHOWN), lists.slice(LISTS_SHOWN)];
  return (
    <Callout
      kind={over.length > 0 ? "warn" : "info"}
      title={`${countText(targets, "target")} take ${numberText(queriesPerDay)} queries a day`}
      actions={
        <Button kind="main" name="confirmed" value="yes">
          Add them
        </Button>
      }
    >
      <p>
        Each is checked on the lists of its kind every six hours. It costs no credits, but most lists allow a number of
        queries a day.{" "}
        {over.length > 0 &&
          `${countText(over.length, "list allows", "lists allow")} fewer: there, a part of the targets stays unknown.`}
      </p>
      <ListCosts lists={shown} />
      {others.length > 0 && (
        <details>
          <summary>{countText(others.length, "more list")} with more room</summary>
          <ListCosts lists={others} />
        </details>
      )}
    </Callout>
  );
};

const ListCosts = ({ lists }: { readonly lists: readonly ListCost[] }) => (
  <ul class="plain-list">
    {lists.map(({ name, queriesPerDay, queriesToday, most, published, share }) => (
      <li key={name}>
        <b>{name}</b>: {numberText(queriesPerDay)} a day, {percentText(share)} of the {numberText(most)} that may be
        sent; {numberText(queriesToday)} were sent today.
        {published !== null && <span class="second">Published limit: {published}</span>}
      </li>
    ))}
  </ul>
);

/** Asks for a domain whose mail hosts and addresses may be targets. */
export const Discover = ({ values }: Pick<NewPageProps, "values">) => (
  <Panel title="Find what belongs to you">
    <p class="soft">Enter a domain to find its mail hosts and the addresses in its SPF record.</p>
    <PostForm action={DISCOVER_PATH} class="form">
      <Field name="domain" label="Domain" placeholder="example.com" value={textOf(values, "domain")} isMono />
      <Field
        name="dmarc_domain"
        label="Own servers in DMARC reports about"
        placeholder="example.com"
        value={textOf(values, "dmarc_domain")}
        isMono
      />
      <CheckField
        name="egress"
        label="The addresses of this service"
        hint="From which it verifies addresses and sends alerts."
        isChecked={values.egress === "on"}
      />
      <div class="actions">
        <Button icon="search">Search</Button>
      </div>
    </PostForm>
  </Panel>
);

const Found = ({ found, unknown }: NewPageProps) => (
  <Panel title={found.length === 0 ? "Nothing was found" : `${countText(found.length, "target")} found`}>
    {found.length > 0 && (
      <PostForm action="/blocklists/found" class="form">
        {found.map(({ target, source }) => (
          <CheckField
            key={target}
            name="found"
            value={target}
            isChecked
            label={<span class="mono">{target}</span>}
            hint={source}
          />
        ))}
        <Field name="label" label="Label" hint="For all of them." />
        <div class="actions">
          <Button kind="main" icon="plus">
            Monitor the chosen ones
          </Button>
        </div>
      </PostForm>
    )}
    {unknown !== null && unknown.length > 0 && (
      <ul class="names soft small">
        {unknown.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    )}
  </Panel>
);
