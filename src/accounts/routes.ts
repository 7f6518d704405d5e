import { Elysia } from "elysia";
import { AppError } from "../base/errors.ts";
import { rateOf } from "../billing/plans.ts";
import type { Ledger } from "../billing/store.ts";
import type { Guard } from "../http/guard.ts";
import type { AccountStore } from "./store.ts";

export interface AccountRouteDeps {
  readonly guard: Guard;
  readonly store: AccountStore;
  readonly ledger: Ledger;
}

/** `GET /v1/account`: what the calling key belongs to. Any key may ask. */
export const createAccountRoutes = ({ guard, store, ledger }: AccountRouteDeps) =>
  new Elysia({ name: "accounts" }).use(guard).get(
    "/v1/account",
    async ({ caller }) => {
      const account = store.findAccount(caller.accountId);
      if (account === undefined) throw new AppError("not_found");
      const { perSecond, burst } = rateOf(account.plan);
      return {
        id: account.id,
        name: account.name,
        plan: account.plan,
        mode: caller.mode,
        credits: ledger.balance(account.id),
        limits: { requests_per_second: perSecond, burst },
      };
    },
    { demand: { scope: null } },
  );
