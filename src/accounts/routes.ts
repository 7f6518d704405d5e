import { z } from "zod";
import {
  integerField,
  textField,
  enumField,
  idField,
  namedResponse,
  okResponse,
} from "../foundation/http/schema-fields.ts";
import { AppError } from "../foundation/base/errors.ts";
import { PLAN_NAMES, rateOf, type Ledger } from "./billing/store.ts";
import type { Guard } from "../foundation/http/guard.ts";
import { declareRoute, handle, serveRoutes } from "../foundation/http/route.ts";
import { SCOPES } from "../foundation/http/scopes.ts";
import type { AccountStore } from "./store.ts";

const accountSchema = namedResponse("Account", {
  id: idField("The id of the account."),
  name: textField("The name of the account."),
  plan: enumField(PLAN_NAMES, "The plan, which sets the limits unless the account has its own."),
  mode: enumField(["live", "test"], "The mode of the calling key."),
  scopes: z.array(z.enum(SCOPES)).meta({ description: "What the calling key may do; write includes read." }),
  credits: z
    .object({
      available: integerField("Credits that can be spent."),
      held: integerField("Credits held for verifications that are not finished."),
    })
    .meta({ description: "The credits of the account." }),
  limits: z
    .object({
      requests_per_second: integerField("Sustained verification requests per second."),
      burst: integerField("Verification requests that may come at once."),
    })
    .meta({ description: "The rate limits of the account." }),
});

const GET_ACCOUNT = declareRoute({
  method: "GET",
  path: "/v1/account",
  operationId: "getAccount",
  tag: "Account",
  summary: "Get the account of the calling key",
  description: "Returns the name, plan, credits and limits of the account. Any key may call it, whatever its scopes.",
  scope: null,
  responses: {
    200: okResponse("The account.", accountSchema, {
      id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
      name: "default",
      plan: "free",
      mode: "live",
      scopes: ["verifications:read", "verifications:write"],
      credits: { available: 99, held: 1 },
      limits: { requests_per_second: 1, burst: 2 },
    }),
  },
});

/** The routes of accounts. */
export const ACCOUNT_ROUTES = [GET_ACCOUNT] as const;

/** Serves the routes of accounts. */
export const createAccountRoutes = (
  guard: Guard,
  {
    store,
    ledger,
  }: {
    store: AccountStore;
    ledger: Ledger;
  },
) =>
  serveRoutes(guard, [
    handle(GET_ACCOUNT, ({ caller }) => {
      const account = store.findAccount(caller.accountId);
      if (account === undefined) throw new AppError("not_found");
      const { id, name, plan } = account;
      const { perSecond, burst } = rateOf(account);
      const limits = { requests_per_second: perSecond, burst };
      return { id, name, plan, mode: caller.mode, scopes: caller.scopes, credits: ledger.balance(id), limits };
    }),
  ]);
