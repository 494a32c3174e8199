// acl: allows or denies clients by their groups.
import { Type as t } from "@sinclair/typebox";
import { type Outcome, reject } from "../pdk/response.ts";
import type { RequestContext } from "../pdk/context.ts";
import { authScopes, definePlugin } from "../pdk/definition.ts";
import { config, flag, listOf } from "../pdk/fields.ts";

const groupName = t.String({
  minLength: 1,
  maxLength: 128,
  pattern: "^[^\\u0000-\\u001f\\u007f]+$",
  errorMessage: "must be text without control characters",
  description: "Name of a group",
});

const schema = config({
  allow: listOf(groupName, {
    description: "Groups that are allowed: a client must be in one; exclusive with deny",
  }),
  deny: listOf(groupName, {
    description: "Groups that are denied: a client must be in none; exclusive with allow",
  }),
  hide_groups_header: flag(true, "Do not send the groups to the target in X-Consumer-Groups"),
});

const HEADER = "X-Consumer-Groups";

export default definePlugin({
  name: "acl",
  summary: "Allows or denies consumers by their groups",
  description: `Needs an authentication plugin in the same scope: a client without an identity gets 403, with either list, also when an access
policy has allowed it without authentication. Groups are those of the consumer and those that the authentication plugin adds,
such as a claim of an identity provider. The groups of an anonymous consumer count like those of any other.`,
  group: "access",
  order: 7500,
  phases: ["access"],
  scopes: authScopes,
  config: schema,
  example: { allow: ["staff"] },
  onError: "closed",
  ignoresPath: true,
  check: ({ allow, deny }) => {
    if (allow.length === 0 && deny.length === 0)
      return [{ path: "", message: "allow or deny must name a group" }];
    return allow.length > 0 && deny.length > 0
      ? [{ path: "deny", message: "must be empty when allow is not" }]
      : [];
  },
  create: ({ allow, deny, hide_groups_header: isHidden }) => {
    const allowed = new Set(allow);
    const denied = new Set(deny);
    const isWelcome = (groups: readonly string[]) =>
      denied.size > 0
        ? !groups.some((group) => denied.has(group))
        : groups.some((group) => allowed.has(group));
    return {
      access(context) {
        if (!context.isAuthenticated && !context.isAnonymous) return refuse("acl.unknown");
        if (!isWelcome(context.groups)) return refuse("acl.denied");
        if (!isHidden) tell(context);
        return undefined;
      },
    };
  },
});

const refuse = (reason: string): Outcome =>
  reject(403, reason, { detail: "the client is not allowed to do this" });

/** Groups of an identity provider may have any name: names that could be read as another or as two are dropped. */
function tell({ groups, upstream }: RequestContext): void {
  const names = groups.filter((group) => /^[\x21-\x2b\x2d-\x7e]+$/.test(group));
  if (names.length > 0) upstream.setHeader(HEADER, names.join(", "));
}
