import { Elysia } from "elysia";
import { z } from "zod";
import { AppError } from "../base/errors.ts";
import { PLAN_NAMES, rateOf } from "../billing/plans.ts";
import type { Ledger } from "../billing/store.ts";
import type { Guard } from "../http/guard.ts";
import type { Operation } from "../http/openapi.ts";
import type { AccountStore } from "./store.ts";

export interface AccountRouteDeps {
  readonly guard: Guard;
  readonly store: AccountStore;
  readonly ledger: Ledger;
}

const accountSchema = z
  .object({
    id: z.uuid(),
    name: z.string(),
    plan: z.enum(PLAN_NAMES),
    mode: z.enum(["live", "test"]).meta({ description: "Mode of the calling key." }),
    credits: z.object({ available: z.int(), held: z.int() }),
    limits: z.object({ requests_per_second: z.int(), burst: z.int() }),
  })
  .meta({ title: "Account" });

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

export const ACCOUNT_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/account",
    tag: "Account",
    summary: "The account, plan and credits of the calling key",
    responses: {
      200: {
        description: "The account.",
        schema: accountSchema,
        example: {
          id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
          name: "default",
          plan: "free",
          mode: "live",
          credits: { available: 99, held: 1 },
          limits: { requests_per_second: 1, burst: 2 },
        },
      },
    },
  },
];
