// The endpoints of every collection: list, create, get, replace, patch, delete; a description holds the differences.
import type { CollectionName } from "../../model/gateway-config.ts";
import type { Resource } from "../../control/resource.ts";
import {
  bodyOf,
  cascadeParameter,
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
  writeOptionsOf,
} from "../write-options.ts";

export interface CollectionDescription {
  /** `/api/v1/services` */
  readonly path: string;
  /** Noun in sentences: `service`. */
  readonly word: string;
  /** Heading in the API reference. */
  readonly tag: string;
  /** Names in `components.schemas`. */
  readonly schema: string;
  readonly inputSchema: string;
  /** Query parameters of the list beside tag, name and q. */
  readonly parents?: readonly string[];
  /** Further filter parameters. */
  readonly filters?: readonly unknown[];
  /** Whether names can replace ids in paths. */
  readonly isNamed: boolean;
  /** Word for such a name; default: name. */
  readonly nameWord?: string;
  /** A sentence about replacing one. */
  readonly replaceNote?: string;
}

type AnyResource = Pick<
  Resource<CollectionName, unknown>,
  "list" | "get" | "create" | "replace" | "patch" | "remove"
>;

export function readEndpoints(at: CollectionDescription, resource: AnyResource): Endpoint[] {
  const parents = (at.parents ?? []).map((name) =>
    queryParameter(
      name,
      `Only objects of this ${name.replace("_id", "").replace("_", " ")}: ID or name`,
    ),
  );
  return [
    {
      method: "GET",
      path: at.path,
      takesBody: false,
      description: {
        summary: `List ${at.tag.toLowerCase()}`,
        tags: [at.tag],
        parameters: [...filterParameters, ...parents, ...(at.filters ?? [])],
        responses: readResponses(at.schema, { list: true }),
      },
      answer: (call) => replyRead(resource.list(filtersOf(call))),
    },
    {
      method: "GET",
      path: `${at.path}/:id`,
      takesBody: false,
      description: {
        summary: `Get a ${at.word}`,
        tags: [at.tag],
        parameters: [idParameter(at)],
        responses: readResponses(at.schema),
      },
      answer: (call) => {
        requireKnownQuery(call, []);
        return replyRead(resource.get(idOf(call)));
      },
    },
  ];
}

export function writeEndpoints(at: CollectionDescription, resource: AnyResource): Endpoint[] {
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
      summary: `Create a ${at.word}`,
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
      summary: `Replace a ${at.word}`,
      description: ["Absent fields return to their defaults.", at.replaceNote, CREATES]
        .filter((sentence) => sentence !== undefined)
        .join(" "),
      tags: [at.tag],
      parameters: [idParameter(at), dryRunParameter, ifMatchParameter, ifNoneMatchParameter],
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
      summary: `Change fields of a ${at.word}`,
      tags: [at.tag],
      parameters: [idParameter(at), dryRunParameter, ifMatchParameter],
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
      summary: `Delete a ${at.word}`,
      tags: [at.tag],
      parameters: [idParameter(at), dryRunParameter, cascadeParameter, ifMatchParameter],
      responses: deleteResponses(),
    },
    answer: (call) => remove(call, resource),
  };
}

/** Limits the response head to what clients accept. */
const MAX_DELETED_LENGTH = 4000;

async function remove(call: Call, resource: AnyResource): Promise<Reply> {
  const options = writeOptionsOf(call, ["cascade"]);
  const cascade = flagOf(call, "cascade");
  const { removed, revision } = await resource.remove(idOf(call), { ...options, cascade });
  let names = removed.join(", ");
  if (names.length > MAX_DELETED_LENGTH) names = `${removed.length} objects`;
  return {
    body: { deleted: true },
    headers: {
      ...changeHeaders(revision, options),
      ...(removed.length > 0 ? { "x-deleted": names } : {}),
    },
  };
}

function idParameter({ word, isNamed, nameWord = "name" }: CollectionDescription) {
  return pathParameter(isNamed ? `ID or ${nameWord} of the ${word}` : `ID of the ${word}`);
}

export function idOf(call: Call): string {
  return call.params["id"] ?? "";
}
