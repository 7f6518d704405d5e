import { z } from "zod";
import { type Accounts, describeAccountProblem } from "../../accounts/accounts.ts";
import type { Account, AccountStore } from "../../accounts/store.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { rateOf, type Balance } from "../../accounts/billing/store.ts";
import { Button, Field, PostForm } from "../components/form.tsx";
import { Link } from "../components/link.tsx";
import { Num } from "../components/number.tsx";
import { Columns, PageHead, Panel, Row, Rows } from "../components/panel.tsx";
import { Time } from "../components/time.tsx";
import { formAction, page } from "../page.ts";
import type { View, Viewer } from "../visit.ts";
import { redirectTo } from "../redirect.ts";

/** How long things are kept, as the operator has set it. */
export interface RetentionFact {
  readonly what: string;
  /** Null: for good. */
  readonly days: number | null;
}

export interface AccountUseCases {
  readonly accounts: Pick<Accounts, "rename">;
  readonly store: Pick<AccountStore, "findAccount">;
  readonly balance: (accountId: string) => Balance;
  readonly retention: readonly RetentionFact[];
}

const PATH = "/settings/account";

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
        if (!renamed.ok)
          throw new AppError("Invalid request body", {
            issues: [{ path: "name", message: describeAccountProblem(renamed.error, name) }],
          });
        return redirectTo(viewer, PATH, { ok: `The account is now called "${name}".` });
      },
      { rerender: ({ viewer }) => view(viewer) },
    ),
  ];
};

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
      <PageHead title="Account" crumbs={[["Settings", "/settings"]]} />
      <Columns side={isOwner && <Rename name={account.name} />}>
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
        <Panel title="How long things are kept" isFlush>
          <Rows>
            {retention.map(({ what, days }) => (
              <Row key={what} label={what}>
                {days === null ? "for good" : `${days} days`}
              </Row>
            ))}
          </Rows>
        </Panel>
      </Columns>
    </>
  );
};

const Rename = ({ name }: { readonly name: string }) => (
  <Panel title="Rename">
    <PostForm action={PATH} class="form">
      <Field name="name" label="Name" value={name} hint="Keys, credits and history stay." isRequired />
      <Button>Rename</Button>
    </PostForm>
  </Panel>
);
