import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { ApiKey } from "../../accounts/store.ts";
import type { Guard } from "../../foundation/http/guard.ts";
import { attachment } from "../../foundation/http/content-disposition.ts";
import { sendJson, streamRows } from "../../foundation/http/response.ts";
import { idParameter } from "../../foundation/http/route-input.ts";
import type { Checks } from "../../verify/checks.ts";
import type { Evidence } from "../../verify/evidence.ts";
import type { History } from "../../verify/history.ts";
import { resultSchema } from "../../verify/result.ts";
import type { VerificationRow } from "../../verify/store.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import type { Flash } from "../flash.ts";
import { formAction, page } from "../page.ts";
import type { Viewer, View } from "../visit.ts";
import { redirectTo } from "../redirect.ts";
import { VerificationBody } from "./verification-body.tsx";
import { filtersOf, VerificationsBody, verificationsQuery } from "./verifications-body.tsx";

export interface VerifyPageUseCases {
  readonly checks: Checks;
  readonly history: History;
  readonly guard: Guard;
  readonly clock: Clock;
  /** The API keys of an account, for the filter. */
  readonly keysOf: (accountId: string) => readonly ApiKey[];
  readonly nameOf: (keyId: string) => string | null;
}

/** How long a form waits for a result before it shows the page of a pending verification. */
const WAIT_MS = 4_000;
const ROWS = 50;
const EMAIL_CHARACTERS_MAX = 1_000;

const idOnly = z.object({ id: idParameter("verification") });
const addressForm = z.object({ email: z.string().trim().min(1, "Enter an email address").max(EMAIL_CHARACTERS_MAX) });

/** The address in a text that was typed, as a list reads a cell, and what to say when more stood around it. */
const readAddress = (typed: string): { readonly email: string; readonly note?: Flash } => {
  const read = readAddressCell(typed);
  if (!read.ok || read.value.text === typed) return { email: typed };
  const { text } = read.value;
  return { email: text, note: { ok: `“${typed}” is read as ${text}.` } };
};

/** Verification of one address, its evidence, and the history. */
export const createVerifyPages = (useCases: VerifyPageUseCases) => [
  ...historyPages(useCases),
  formAction(
    { path: "/verify", form: addressForm },
    async ({ viewer, form, request }) => {
      useCases.guard.limitUser(viewer.caller);
      const { email, note } = readAddress(form.email);
      const order = { email, source: null, idempotencyKey: null };
      const row = await useCases.checks.order(viewer.caller, order, WAIT_MS, request.signal);
      return redirectTo(viewer, `/verify/${row.id}`, note);
    },
    { rerender: ({ viewer }) => historyView(useCases, viewer, verificationsQuery.parse({})) },
  ),
  page({ path: "/verify/:id", params: idOnly }, ({ viewer, params }) => checkView(useCases, viewer, params.id)),
  page({ path: "/verify/:id/json", params: idOnly }, async ({ request, viewer, params }) => {
    const row = await find(useCases, viewer, params.id);
    const result = row.result === null ? null : resultSchema.parse(JSON.parse(row.result));
    const evidence = await findEvidence(useCases, viewer, params.id);
    return sendJson(request, { id: row.id, status: row.status, result, evidence });
  }),
  formAction({ path: "/verify/:id/delete", params: idOnly }, async ({ viewer, params }) => {
    await useCases.checks.remove(viewer.caller, params.id);
    return redirectTo(viewer, "/verify", { ok: "The verification and its evidence are deleted." });
  }),
];

const historyPages = (useCases: VerifyPageUseCases) => [
  page({ path: "/verify", query: verificationsQuery }, ({ viewer, query }) => historyView(useCases, viewer, query)),
  page({ path: "/verify.csv", query: verificationsQuery }, ({ request, viewer, query }) => {
    const rows = useCases.history.csv(viewer.caller, filtersOf(query, viewer), (id) => useCases.nameOf(id));
    return streamRows(request, rows, {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": attachment("verifications", ".csv"),
    });
  }),
];

const historyView = async (
  { history, keysOf, nameOf }: VerifyPageUseCases,
  viewer: Viewer,
  query: z.output<typeof verificationsQuery>,
): Promise<View> => {
  const window = { before: query.cursor ?? null, limit: ROWS };
  const { rows, next } = await history.page(viewer.caller, filtersOf(query, viewer), window);
  const keys = keysOf(viewer.account.id).filter(({ mode }) => mode === viewer.mode);
  return {
    ...{ title: "Verify", section: "verify" },
    body: <VerificationsBody {...{ rows, next, query, keys, nameOf }} />,
  };
};

const find = ({ checks }: VerifyPageUseCases, { caller }: Viewer, id: string): Promise<VerificationRow> =>
  checks.poll(caller, id, 0);

/** The evidence; null when it has expired. */
const findEvidence = async (
  { checks }: VerifyPageUseCases,
  { caller }: Viewer,
  id: string,
): Promise<Evidence | null> => {
  try {
    return await checks.evidence(caller, id);
  } catch (error) {
    if (error instanceof AppError && error.code === "not_found") return null;
    throw error;
  }
};

const checkView = async (useCases: VerifyPageUseCases, viewer: Viewer, id: string): Promise<View> => {
  const row = await find(useCases, viewer, id);
  const evidence = await findEvidence(useCases, viewer, id);
  return {
    ...{ title: row.email, section: "verify" },
    body: <VerificationBody row={row} evidence={evidence} by={useCases.nameOf(row.keyId)} />,
  };
};
