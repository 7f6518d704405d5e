import { z } from "zod";
import { type Accounts, describeAccountProblem, NO_CUSTOM_RATE } from "../../accounts/accounts.ts";
import type { Account, AccountStore } from "../../accounts/store.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { type Balance, PLAN_NAMES, rateOf } from "../../accounts/billing/store.ts";
import { CREDITS_PATH, CREDITS_TEXT, GrantCredits } from "../components/credits.tsx";
import { Button, Field, PostForm, SelectField } from "../components/form.tsx";
import { Link } from "../components/inline.tsx";
import { countText, Num, Time } from "../components/figures.tsx";
import { Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { formAction, page } from "../page.ts";
import { usePage, type View, type Viewer, isOwnPath, redirectTo, redirectToPath } from "../visit.ts";

/** How long things are kept, as the operator has set it. */
export interface RetentionFact {
  readonly what: string;
  /** Null: for good. */
  readonly days: number | null;
}

export interface AccountUseCases {
  readonly accounts: Pick<Accounts, "grantCredits" | "rename" | "setPlan">;
  readonly store: Pick<AccountStore, "findAccount">;
  readonly balance: (accountId: string) => Balance;
  readonly retention: readonly RetentionFact[];
}

const PATH = "/settings/account";
const PLAN_PATH = "/settings/account/plan";
/** What the page offers to grant: enough for a list. */
const CREDITS_OFFERED = 20_000;

/** The account: its name, plan, credits, limits and how long things are kept. */
export const createAccountPages = ({ accounts, store, balance, retention }: AccountUseCases) => {
  const accountOf = ({ account }: Viewer): Account => {
    const found = store.findAccount(account.id);
    if (found === undefined) throw new AppError("not_found", { message: "The account was deleted." });
    return found;
  };
  const view = (viewer: Viewer): View => {
    const account = accountOf(viewer);
    const facts = { account, balance: balance(account.id), retention, isOwner: viewer.user.role === "owner" };
    return { title: "Account", section: "settings", body: <AccountPage {...facts} /> };
  };
  return [
    page({ path: PATH }, ({ viewer }) => view(viewer)),
    formAction(
      { path: PATH, form: z.object({ name: z.string().trim() }) },
      ({ viewer, form: { name } }) => {
        const renamed = accounts.rename(accountOf(viewer).name, name, viewer.user.id);
        if (!renamed.ok) throw refusal("name", describeAccountProblem(renamed.error, name));
        return redirectTo(viewer, PATH, { ok: `The account is now called "${name}".` });
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
    formAction(
      { path: CREDITS_PATH, form: grantForm },
      ({ viewer, form: { credits, back } }) => {
        const { name } = accountOf(viewer);
        const granted = accounts.grantCredits(name, credits, "granted in the dashboard", viewer.user.id);
        if (!granted.ok) throw refusal("credits", describeAccountProblem(granted.error, name));
        const ok = `${countText(credits, "credit")} granted: ${countText(granted.value.available, "credit")} available.`;
        return back === undefined ? redirectTo(viewer, PATH, { ok }) : redirectToPath(back, { ok });
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
    formAction(
      { path: PLAN_PATH, form: planForm },
      ({ viewer, form: { plan, rate, burst } }) => {
        const custom = { ratePerSecond: rate, rateBurst: burst };
        const changed = accounts.setPlan(accountOf(viewer).name, plan, custom, viewer.user.id);
        if (!changed.ok) throw refusal("rate", describeAccountProblem(changed.error, viewer.account.name));
        return redirectTo(viewer, PATH, { ok: `The account has the plan ${plan}.` });
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
  ];
};

const refusal = (path: string, message: string) =>
  new AppError("Invalid request body", { issues: [{ path, message }] });

const wholeText = z
  .string()
  .trim()
  .regex(/^\d{1,10}$/, "Must be a whole number")
  .transform(Number);
const grantForm = z.object({ credits: wholeText, back: z.string().refine(isOwnPath).optional() });
const limitText = z
  .literal("")
  .transform(() => null)
  .or(wholeText);
const planForm = z.object({ plan: z.enum(PLAN_NAMES), rate: limitText, burst: limitText });

interface PageProps {
  readonly account: Account;
  readonly balance: Balance;
  readonly retention: readonly RetentionFact[];
  readonly isOwner: boolean;
}

const AccountPage = ({ account, balance, retention, isOwner }: PageProps) => {
  const { perSecond, burst } = rateOf(account);
  return (
    <>
      <PageHead title="Account" />
      <Columns
        side={
          <>
            <Credits />
            <PlanForm account={account} />
            {isOwner && <Rename name={account.name} />}
          </>
        }
      >
        <Panel title={account.name} isFlush>
          <Rows>
            <Row label="Plan">{account.plan}</Row>
            <Row label="Credits available">
              <Link href="/usage">
                <Num value={balance.available} />
              </Link>
            </Row>
            <Row label="Credits held by running verifications">
              <Num value={balance.held} />
            </Row>
            <Row label="Verifications per second and key">
              {perSecond}, bursts of {burst}
            </Row>
            <Row label="Created">
              <Time atMs={account.createdAtMs} style="full" />
            </Row>
            <Row label="Id">
              <span class="mono">{account.id}</span>
            </Row>
          </Rows>
        </Panel>
        <KeptFor facts={retention} />
      </Columns>
    </>
  );
};

/** How long things are kept. */
export const KeptFor = ({ facts }: { readonly facts: readonly RetentionFact[] }) => (
  <Panel title="How long things are kept" isFlush>
    <Rows>
      {facts.map(({ what, days }) => (
        <Row key={what} label={what}>
          {days === null ? "for good" : `${days} days`}
        </Row>
      ))}
    </Rows>
  </Panel>
);

const Credits = () =>
  usePage().may(CREDITS_PATH) ? (
    <Panel title="Credits">
      <p class="soft">{CREDITS_TEXT}</p>
      <GrantCredits credits={CREDITS_OFFERED} />
    </Panel>
  ) : null;

const PlanForm = ({ account }: Pick<PageProps, "account">) =>
  usePage().may(PLAN_PATH) ? (
    <Panel title="Plan and limits">
      <PostForm action={PLAN_PATH} class="form">
        <SelectField
          name="plan"
          label="Plan"
          value={account.plan}
          options={PLAN_NAMES.map(
            (plan) => [plan, `${plan}: ${rateOf({ plan, ...NO_CUSTOM_RATE }).perSecond} a second`] as const,
          )}
        />
        <Field
          name="rate"
          label="Verifications per second and key"
          type="number"
          min={1}
          value={account.ratePerSecond}
          hint="Empty: as the plan says."
        />
        <Field
          name="burst"
          label="Burst"
          type="number"
          min={1}
          value={account.rateBurst}
          hint="Empty: as the plan says."
        />
        <Button>Change the plan</Button>
      </PostForm>
    </Panel>
  ) : null;

const Rename = ({ name }: { readonly name: string }) => (
  <Panel title="Rename">
    <PostForm action={PATH} class="form">
      <Field name="name" label="Name" value={name} hint="Keys, credits and history stay." isRequired />
      <Button>Rename</Button>
    </PostForm>
  </Panel>
);
