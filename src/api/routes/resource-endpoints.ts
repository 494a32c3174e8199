// The endpoints of every collection: list, create, get, replace, patch, delete, as its definition describes them.
import type { AnyResource } from "../../control/resource.ts";
import { type CollectionName, definitionOf } from "../../model/gateway-config.ts";
import { filterName } from "../../model/resource.ts";
import { shortList } from "../../model/short-list.ts";
import { collectionPath } from "../access.ts";
import {
  bodyOf,
  cascadeParameter,
  managedParameter,
  deleteResponses,
  dryRunParameter,
  filterParameters,
  ifMatchParameter,
  ifNoneMatchParameter,
  patchOf,
  pathParameter,
  queryParameter,
  readResponses,
  writeResponses,
} from "../description.ts";
import type { Call, Endpoint, Reply } from "../endpoint.ts";
import {
  changeHeaders,
  filtersOf,
  flagOf,
  replyRead,
  replyWritten,
  requireKnownQuery,
  forcibleOptionsOf,
  writeOptionsOf,
} from "../write-options.ts";

/** A collection in the API reference, from its definition. */
interface CollectionDescription {
  /** `/api/v1/services` */
  readonly path: string;
  /** Noun in sentences: `service`. */
  readonly word: string;
  /** Heading. */
  readonly tag: string;
  /** Names in `components.schemas`. */
  readonly schema: string;
  readonly inputSchema: string;
  /** What stands in a path: `ID or name`. */
  readonly key: string;
  /** Query parameters of the list beside those of all lists. */
  readonly filters: readonly unknown[];
  /** A sentence about replacing one. */
  readonly replaceNote: string | undefined;
}

export function descriptionOf(name: CollectionName): CollectionDescription {
  const { word, api, nameField, nameWord = "name", references, filters = {} } = definitionOf(name);
  const parents = references
    .filter(({ isFilter }) => isFilter)
    .map((field) => {
      const of = `${definitionOf(field.to).word}: ID or name`;
      return queryParameter(filterName(field), `Only objects of this ${of}`);
    });
  const own = Object.entries(filters).map(([filter, { description }]) =>
    queryParameter(filter, description),
  );
  const most = `Maximum number of ${api.tag.toLowerCase()}, the oldest first`;
  const limit = api.takesLimit === true ? [queryParameter("limit", most)] : [];
  return {
    path: collectionPath(name),
    word,
    tag: api.tag,
    schema: api.schema,
    inputSchema: `${api.schema}Input`,
    key: nameField === null ? "ID" : `ID or ${nameWord}`,
    filters: [...parents, ...own, ...limit],
    replaceNote: api.replaceNote,
  };
}

/** The path parameter of an object. */
export const idParameter = (name: CollectionName) => keyParameter(descriptionOf(name));

/** The endpoints that every collection has. */
export const collectionEndpoints = (name: CollectionName, resource: AnyResource): Endpoint[] => [
  ...readEndpoints(name, resource),
  ...writeEndpoints(name, resource),
];

export function readEndpoints(name: CollectionName, resource: AnyResource): Endpoint[] {
  const at = descriptionOf(name);
  return [
    {
      method: "GET",
      path: at.path,
      takesBody: false,
      description: {
        operationId: `list${at.schema}s`,
        summary: `List ${at.word}s`,
        tags: [at.tag],
        parameters: [...filterParameters, ...at.filters],
        responses: readResponses(at.schema, { list: true }),
      },
      answer: (call) => replyRead(resource.list(filtersOf(call))),
    },
    {
      method: "GET",
      path: `${at.path}/:id`,
      takesBody: false,
      description: {
        operationId: `get${at.schema}`,
        summary: `Get ${oneOf(at)}`,
        tags: [at.tag],
        parameters: [keyParameter(at)],
        responses: readResponses(at.schema),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return replyRead(resource.get(idOf(call)));
      },
    },
  ];
}

export function writeEndpoints(name: CollectionName, resource: AnyResource): Endpoint[] {
  const at = descriptionOf(name);
  return [
    createEndpoint(at, resource),
    replaceEndpoint(at, resource),
    patchEndpoint(at, resource),
    deleteEndpoint(at, resource),
  ];
}

function createEndpoint(at: CollectionDescription, resource: AnyResource): Endpoint {
  return {
    method: "POST",
    path: at.path,
    takesBody: true,
    description: {
      operationId: `create${at.schema}`,
      summary: `Create ${oneOf(at)}`,
      tags: [at.tag],
      parameters: [dryRunParameter],
      requestBody: bodyOf(at.inputSchema),
      responses: writeResponses(at.schema),
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await resource.create(call.body, options), options);
    },
  };
}

const CREATES = "An unused ID creates the object.";

function replaceEndpoint(at: CollectionDescription, resource: AnyResource): Endpoint {
  return {
    method: "PUT",
    path: `${at.path}/:id`,
    takesBody: true,
    description: {
      operationId: `replace${at.schema}`,
      summary: `Replace ${oneOf(at)}`,
      description: ["Absent fields return to their defaults.", at.replaceNote, CREATES]
        .filter((sentence) => sentence !== undefined)
        .join(" "),
      tags: [at.tag],
      parameters: [keyParameter(at), dryRunParameter, ifMatchParameter, ifNoneMatchParameter],
      requestBody: bodyOf(at.inputSchema),
      responses: writeResponses(at.schema),
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await resource.replace(idOf(call), call.body, options), options);
    },
  };
}

function patchEndpoint(at: CollectionDescription, resource: AnyResource): Endpoint {
  return {
    method: "PATCH",
    path: `${at.path}/:id`,
    takesBody: true,
    description: {
      operationId: `update${at.schema}`,
      summary: `Change fields of ${oneOf(at)}`,
      tags: [at.tag],
      parameters: [keyParameter(at), dryRunParameter, ifMatchParameter],
      requestBody: patchOf(at.inputSchema),
      responses: writeResponses(at.schema),
    },
    answer: async (call) => {
      const options = writeOptionsOf(call);
      return replyWritten(await resource.patch(idOf(call), call.body, options), options);
    },
  };
}

function deleteEndpoint(at: CollectionDescription, resource: AnyResource): Endpoint {
  return {
    method: "DELETE",
    path: `${at.path}/:id`,
    takesBody: false,
    description: {
      operationId: `delete${at.schema}`,
      summary: `Delete ${oneOf(at)}`,
      tags: [at.tag],
      parameters: [
        keyParameter(at),
        dryRunParameter,
        cascadeParameter,
        managedParameter,
        ifMatchParameter,
      ],
      responses: deleteResponses(),
    },
    answer: (call) => remove(call, resource),
  };
}

async function remove(call: Call, resource: AnyResource): Promise<Reply> {
  const options = forcibleOptionsOf(call, ["cascade"]);
  const cascade = flagOf(call, "cascade");
  const { removed, revision } = await resource.remove(idOf(call), { ...options, cascade });
  return {
    body: { deleted: true },
    headers: {
      ...changeHeaders(revision, options),
      ...(removed.length > 0 ? { "x-deleted": shortList(removed) } : {}),
    },
  };
}

/** `a user`, `an ACME account`. */
const oneOf = ({ word }: CollectionDescription) => `${/^[aeio]/i.test(word) ? "an" : "a"} ${word}`;

const keyParameter = ({ key, word }: CollectionDescription) =>
  pathParameter(`${key} of the ${word}`);

export function idOf(call: Call): string {
  return call.params["id"] ?? "";
}
