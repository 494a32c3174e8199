// Reads: lists, single objects with their version, the status and who is signed in; changes nothing.
import {
  keepPreviousData,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from "@tanstack/react-query";
import { createContext, useContext } from "react";
import type { SendOptions } from "./connection.ts";
import { useConnection } from "./connection-context.ts";
import type { Read, ResourceKey, Role, Schemas } from "./resources.ts";

/** Something that was read, and the version to give back when it is changed. */
export interface Versioned<T> {
  readonly value: T;
  readonly etag: string | null;
}

/** Names of what is cached: `[path, …]`, so that everything below a path can be read anew at once. */
export const queryKeys = {
  list: (resource: ResourceKey, filters: SendOptions["query"] = {}) =>
    [resource, "list", filters] as const,
  one: (resource: ResourceKey, id: string) => [resource, "one", id] as const,
  of: (path: string, query: SendOptions["query"] = {}) => [path, query] as const,
  status: ["admin/status"] as const,
  me: ["auth/me"] as const,
};

/** All objects of a resource; the API has no pages. `filters` are query parameters such as `service_id`. */
export function useResourceList<K extends ResourceKey>(
  resource: K,
  filters: SendOptions["query"] = {},
): UseQueryResult<readonly Read<K>[]> {
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.list(resource, filters),
    queryFn: async ({ signal }) =>
      (await connection.send<readonly Read<K>[]>(`/${resource}`, { query: filters, signal })).value,
  });
}

/** One object with its version. Null as id: nothing is read, as for a form that creates. */
export function useResource<K extends ResourceKey>(
  resource: K,
  id: string | null,
): UseQueryResult<Versioned<Read<K>>> {
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.one(resource, id ?? ""),
    enabled: id !== null,
    queryFn: async ({ signal }): Promise<Versioned<Read<K>>> => {
      const path = `/${resource}/${encodeURIComponent(id ?? "")}`;
      const { value, etag } = await connection.send<Read<K>>(path, { signal });
      return { value, etag };
    },
  });
}

export interface ReadOptions {
  readonly query?: SendOptions["query"];
  /** Milliseconds after which it is read again; default: never, events say when. */
  readonly everyMs?: number;
  readonly enabled?: boolean;
  /** Whether another query shows what the last one read until it has an answer. Default: nothing. */
  readonly keepsPrevious?: boolean;
}

/** Anything else that is read: `useRead<Schemas["Stats"]>("stats", { query: { range: "1h" } })`. */
export function useRead<T>(path: string, options: ReadOptions = {}): UseQueryResult<Versioned<T>> {
  const { query = {}, everyMs, enabled = true, keepsPrevious = false } = options;
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.of(path, query),
    enabled,
    ...(everyMs === undefined ? {} : { refetchInterval: everyMs }),
    ...(keepsPrevious ? { placeholderData: keepPreviousData } : {}),
    queryFn: async ({ signal }): Promise<Versioned<T>> => {
      const { value, etag } = await connection.send<T>(`/${path}`, { query, signal });
      return { value, etag };
    },
  });
}

/** Version, workers, revision and warnings of the gateway; open to everybody. */
export function useStatus(): UseQueryResult<Schemas["Status"]> {
  const connection = useConnection();
  return useQuery({
    queryKey: queryKeys.status,
    refetchInterval: 30_000,
    queryFn: async ({ signal }) =>
      (await connection.send<Schemas["Status"]>("/admin/status", { signal })).value,
  });
}

/** Who is signed in; null when nobody is and somebody has to be. */
export function useMe(): UseQueryResult<Schemas["Me"] | null> {
  const connection = useConnection();
  const client = useQueryClient();
  return useQuery({
    queryKey: queryKeys.me,
    staleTime: 60_000,
    queryFn: async ({ signal }): Promise<Schemas["Me"] | null> => {
      // Whoever was signed in is asked over the page, which must not be taken away with what was typed.
      const waitsForSignIn = (client.getQueryData(queryKeys.me) ?? null) !== null;
      try {
        return (await connection.send<Schemas["Me"]>("/auth/me", { signal, waitsForSignIn })).value;
      } catch (error) {
        if (isUnauthorized(error)) return null;
        throw error;
      }
    },
  });
}

const isUnauthorized = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "status" in error && error.status === 401;

const order: readonly Role[] = ["viewer", "editor", "admin"];

/** Whether `role` may do what needs `needed`. */
export const includesRole = (role: Role, needed: Role): boolean =>
  order.indexOf(role) >= order.indexOf(needed);

/** Set by the shell, because hundreds of buttons ask. */
export const RoleContext = createContext<Role>("viewer");

/** Whether the configuration is kept in a file, so that nobody changes it here. */
export const ReadOnlyContext = createContext(false);

/** Whether the caller may change configuration that needs this role. */
export const useMayChange = (needs: Role): boolean => {
  const isReadOnly = useContext(ReadOnlyContext);
  return includesRole(useRole(), needs) && !isReadOnly;
};

/** What the caller may do. */
export const useRole = (): Role => useContext(RoleContext);
