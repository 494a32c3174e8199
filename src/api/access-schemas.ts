// Response schemas of sign-in, sessions and tokens; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { nodeStates } from "../control/fleet-view.ts";
import { signInInput } from "../model/sign-in.ts";
import { fingerprint } from "../model/token.ts";
import { roles } from "../model/user.ts";

const time = (description: string) => t.String({ format: "date-time", description });
const orNull = (schema: TSchema, description: string) =>
  t.Union([schema, t.Null()], { description });
const words = (of: readonly string[], description: string) =>
  t.Unsafe<string>({ type: "string", enum: [...of], description });

const position = (description: string) => t.Integer({ minimum: 0, description });

const node = t.Object(
  {
    id: t.String({ format: "uuid" }),
    name: t.String({ description: "From `--node-name`" }),
    url: t.Union([t.String(), t.Null()], {
      description: "Address of its management API, from `--advertise`; null: not given",
    }),
    version: t.String({ description: "Version of Sluice" }),
    state: words(
      nodeStates,
      "`joining`: has not served the last change since its start; `lagging`: about to serve it; `draining`: serves, and `/readyz` returns 503; `refused`: cannot serve the next change; `outdated`: the next change is of a newer version; `diverged`: the database lacks changes that the node has; `cut_off`: does not reach the database; `away`: no heartbeat for 5 s; `leaving`: stops after its last requests",
    ),
    draining: t.Boolean({ description: "Whether its `/readyz` returns 503 on request" }),
    leader: t.Boolean({
      description: "Whether it does the work of one node: certificates, applications, alerts",
    }),
    stored: position("Position of the last change in its database"),
    served: position("Position of the last change that all its workers serve"),
    error: t.String({
      description: "Why it cannot serve the next change; empty: it can, or the client is no admin",
    }),
    seen_ms_ago: t.Integer({ minimum: 0, description: "Time since its last heartbeat" }),
    clock_offset_ms: t.Integer({ description: "How far its clock is ahead of the database's" }),
    plugins: orNull(
      t.Array(
        t.Object({
          name: t.String(),
          hash: t.String({ description: "SHA-256 of its code, hexadecimal" }),
        }),
      ),
      "What it serves from its directory of plugins, by name; null: its version does not report that, or it serves more than 100",
    ),
    warnings: t.Array(t.String(), {
      description: "Where its plugins differ from those of nodes that are not away",
    }),
  },
  { title: "Node" },
);

const fleetStatus = t.Object(
  {
    node: t.String({ description: "Name of this node" }),
    state: words(nodeStates, "State of this node"),
    since: time("Since when it is in this state"),
    head: position("Position of the last entry of the log"),
    stored: position("Position of the last change in the database of this node"),
    served: position("Position of the last change that all its workers serve"),
    live: orNull(
      t.Integer(),
      "Nodes that are present: not away, and able to serve changes; null while this node is cut off",
    ),
    nodes: t.Integer({ description: "Nodes of the fleet, as far as this one knows" }),
  },
  { title: "FleetStatus", description: "This node in its fleet; null: there is no fleet" },
);

export const accessSchemas: Readonly<Record<string, TSchema>> = {
  SignIn: signInInput,
  Me: t.Object(
    {
      authentication: words(["disabled", "enabled"], "Whether credentials are required"),
      user: orNull(
        t.Object({
          id: t.String({ format: "uuid" }),
          email: t.String(),
          name: t.String(),
          role: words(roles, "Role of the user"),
        }),
        "The user; null for tokens, and before the first user exists",
      ),
      role: words(roles, "Role of the client"),
      method: words(["disabled", "session", "token"], "Authentication method"),
      expires_at: orNull(time("When"), "When the session or token expires; null: never"),
    },
    { title: "Me" },
  ),
  SignedOut: t.Object({ logged_out: t.Literal(true) }, { title: "SignedOut" }),
  Session: t.Object(
    {
      id: t.String({ format: "uuid", description: "ID of the session, different from the cookie" }),
      user_id: t.String({ format: "uuid", description: "ID of the user" }),
      email: t.String({ description: "E-mail address of the user" }),
      method: words(["password", "sso"], "How the user signed in"),
      created_at: time("When the user signed in"),
      expires_at: time("When it expires, used or not"),
      address: t.String({ description: "Address that the user signed in from" }),
      user_agent: t.String({ description: "User-Agent of the browser" }),
      current: t.Boolean({ description: "Whether it is the session of this request" }),
    },
    { title: "Session" },
  ),
  AdminToken: t.Object(
    {
      token: t.String({ description: "Shown once, in this response" }),
      fingerprint,
      created_at: time("When it was created"),
    },
    { title: "AdminToken" },
  ),
  Discovery: t.Array(
    t.Object({
      name: t.String({ description: "The mark of its objects: `docker`, `files`" }),
      state: words(["off", "connecting", "connected", "failed"], "State of the source"),
      problem: orNull(t.String(), "Why it failed, a sentence; null: it did not"),
      looked_at: orNull(time("When it last looked"), "When it last looked; null: never"),
      found: t.Integer({ minimum: 0, description: "Containers, or files" }),
      sites: t.Array(
        t.Object({
          from: t.String({ description: "The container, or the file" }),
          places: t.Array(t.String(), {
            description: "Hosts that it wants, with paths: `shop.example.com/api`",
          }),
          served: t.Boolean({ description: "Whether it is in the configuration" }),
          objects: t.Array(
            t.Object({
              collection: t.String({ description: "`applications`, `routes`" }),
              id: t.String({ format: "uuid" }),
              name: t.String(),
            }),
            { description: "The objects that it became" },
          ),
          problems: t.Array(t.String(), { description: "What is not served and why" }),
        }),
      ),
    }),
    { title: "Discovery" },
  ),
  Nodes: t.Array(node, { title: "Nodes" }),
  Node: node,
  FleetStatus: fleetStatus,
  AdminTokenStatus: t.Object(
    {
      exists: t.Boolean({ description: "Whether an admin token exists" }),
      fingerprint: orNull(fingerprint, "Fingerprint of the token"),
      created_at: orNull(time("When"), "When it was created"),
      last_used_at: orNull(
        time("When"),
        "Last use, accurate to the minute after a crash; null: never",
      ),
    },
    { title: "AdminTokenStatus" },
  ),
};
