// acl: lets clients in or keeps them out by the groups that they are in.
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
    description: "Groups of which a client must be in one; or give deny",
  }),
  deny: listOf(groupName, {
    description: "Groups of which a client must be in none; or give allow",
  }),
  hide_groups_header: flag(true, "Do not tell the target the groups in X-Consumer-Groups"),
});

const HEADER = "x-consumer-groups";

export default definePlugin({
  name: "acl",
  summary: "Lets in only consumers of some groups, or all but those of some groups",
  description: `Needs an authentication plugin in the same place: a client that nobody has recognised is refused with 403, whichever
of the two lists is there. That is also so when an access policy lets a client in without asking who it is. The groups are
those of the consumer and those that an authentication has told, such as the claim of an identity provider. Consumers that
stand in for anonymous clients are judged by their groups like any other.`,
  group: "access",
  order: 7500,
  phases: ["access"],
  scopes: authScopes,
  config: schema,
  example: { allow: ["staff"] },
  onError: "closed",
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

/** Groups that somebody else has told may be called anything: what would be read as another or as two is left out. */
function tell({ groups, upstream }: RequestContext): void {
  const names = groups.filter((group) => /^[\x21-\x2b\x2d-\x7e]+$/.test(group));
  if (names.length > 0) upstream.setHeader(HEADER, names.join(", "));
}
