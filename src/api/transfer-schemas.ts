// Schemas of configuration files, changes and revisions; used for the API description only.
import { type TSchema, Type as t } from "@sinclair/typebox";
import { hostStates } from "../import/host-results.ts";

const difference = t.Object(
  {
    path: t.String({ description: "`health.active.path`; a list counts as one value" }),
    before: t.Unknown({ description: "null: absent; secrets are masked" }),
    after: t.Unknown({ description: "null: absent" }),
  },
  { title: "Difference" },
);

const objectChange = t.Object(
  {
    action: t.Unsafe<string>({ type: "string", enum: ["create", "update", "delete"] }),
    kind: t.String({ description: "`route`, `settings` and so on" }),
    id: t.Union([t.String(), t.Null()], { description: "null for singletons" }),
    name: t.Union([t.String(), t.Null()], { description: "Name, if it has one" }),
    diff: t.Array(difference, {
      description:
        "Fields that differ; with more than 500 objects, created and deleted ones have none",
    }),
  },
  { title: "ObjectChange" },
);

const changes = t.Array(objectChange, { description: "One entry for each object" });

const level = t.Unsafe<string>({ type: "string", enum: ["imported", "changed", "omitted"] });

const report = t.Array(
  t.Object({
    level,
    what: t.String({ description: "Object in the source" }),
    why: t.String({ description: "Result of its import" }),
  }),
  { description: "Import with `from`: the result for every object in the source" },
);

const groups = t.Array(
  t.Object({
    level,
    why: t.String({ description: "Result of the import" }),
    what: t.Array(t.String(), { description: "Objects in the source" }),
  }),
  { description: "Import with `from`: the same report, with the objects of each result together" },
);

const hosts = t.Array(
  t.Object({
    host: t.String({ description: "Name; `*`: any host" }),
    state: t.Union(hostStates.map((state) => t.Literal(state))),
    routes: t.Integer({ description: "Number of its routes" }),
    closed: t.Integer({
      description: "Routes that respond 503 until another protection is set up",
    }),
    why: t.Union([t.String(), t.Null()], { description: "What is different; null: nothing" }),
  }),
  { description: "Import with `from`: the result for each host" },
);

const revision = {
  number: t.Integer({ description: "Number of the revision" }),
  at: t.String({ format: "date-time", description: "When" }),
  actor: t.String({ description: "E-mail address of the user or name of the token" }),
  summary: t.String({ description: "Summary, one line" }),
};

export const transferSchemas: Readonly<Record<string, TSchema>> = {
  Document: t.Object(
    {
      format: t.Integer({ description: "1" }),
      program: t.Optional(t.String({ description: "Program that wrote the file" })),
    },
    {
      additionalProperties: true,
      title: "Document",
      description:
        "A member for each kind of object (`services`, `routes` and so on, lists) and for `settings` and `sso`; or `encrypted`",
    },
  ),
  Changes: t.Object(
    {
      changes,
      report: t.Optional(report),
      report_groups: t.Optional(groups),
      report_hosts: t.Optional(hosts),
    },
    { title: "Changes" },
  ),
  Revision: t.Object(revision, { title: "Revision" }),
  RevisionDetail: t.Object(
    {
      ...revision,
      undo_problem: t.Union([t.String(), t.Null()], {
        description: "Why this client cannot undo it; null: it can",
      }),
      changes,
    },
    { title: "RevisionDetail" },
  ),
};
