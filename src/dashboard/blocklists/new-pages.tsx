import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { discoverAndAdd } from "../../blocklist/discover-targets.ts";
import type { AddOutcome, NewTarget } from "../../blocklist/targets.ts";
import { countText } from "../components/number.tsx";
import { flag, listOf } from "../form-input.ts";
import { formAction, page } from "../page.ts";
import type { FormState, View, Viewer } from "../visit.ts";
import { redirectTo } from "../redirect.ts";
import { DISCOVER_PATH, NEW_PATH, NewPage, type NewPageProps, readTargets } from "./new-page.tsx";
import { settingsFields } from "./settings-form.tsx";
import type { BlocklistUseCases } from "./use-cases.ts";

const TEXT_CHARACTERS_MAX = 500_000;
const LINES_MAX = 10_000;
const FOUND_MAX = 600;
const TARGET_CHARACTERS_MAX = 320;

const NOTHING_READ = { valid: [], problems: [], inRanges: 0 };

const newView = (props: Partial<NewPageProps>): View => ({
  ...{ title: "Add targets", section: "blocklists" },
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
    throw issue("targets", `${countText(read.problems.length, "line")} cannot be added`);
  if (read.inRanges > 0 && form.confirmed === undefined) {
    const cost = useCases.statuses.costOf(viewer.caller, "ipv4", read.inRanges);
    const values = {
      ...{ targets: read.valid.join("\n"), label: label ?? "", alert_severity_min: alertSeverityMin ?? "" },
      ...{ webhook_url: webhookUrl ?? "", recipients: recipients.join(", ") },
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

const discoverAction = ({ discovery, targets }: BlocklistUseCases) =>
  formAction(
    {
      path: DISCOVER_PATH,
      form: z.object({ domain: z.string().trim().max(TARGET_CHARACTERS_MAX).default(""), egress: flag }),
    },
    async ({ viewer, form: { domain, egress } }) => {
      if (domain === "" && !egress) throw issue("domain", "Enter a domain, or choose the addresses of this service");
      const request = { ...(domain === "" ? {} : { domain }), egress, dry_run: true };
      const { found, unknown } = await discoverAndAdd({ discovery, targets }, viewer.caller, request);
      return newView({ found, unknown, values: { domain, egress: egress ? "on" : "" } });
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
