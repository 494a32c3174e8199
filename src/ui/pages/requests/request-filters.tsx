// The filters of recent requests, stored in the page URL; reads no request.
import { Autocomplete, Button, Group, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";
import { ApiError } from "../../api/error.ts";
import { useResourceList } from "../../api/queries.ts";
import { nameOf } from "../../api/resources.ts";
import { useShortcut } from "../../parts/shortcut.ts";
import type { RequestFilters } from "./use-tail.ts";

const names = ["q", "status", "host", "route", "address", "cache", "grpc", "kind"] as const;
type FilterName = (typeof names)[number];

/** The filters in the page URL, with their setters. */
export function useRequestFilters(): {
  readonly filters: RequestFilters;
  readonly set: (name: FilterName, value: string) => void;
  readonly clear: () => void;
} {
  const [parameters, setParameters] = useSearchParams();
  const given = names.flatMap((name) => {
    const value = parameters.get(name) ?? "";
    return value === "" ? [] : [[name, value] as const];
  });
  const change = (edit: (next: URLSearchParams) => void) =>
    setParameters(
      (before) => {
        const next = new URLSearchParams(before);
        edit(next);
        return next;
      },
      { replace: true },
    );
  return {
    filters: Object.fromEntries(given),
    set: (name, value) =>
      change((next) => (value === "" ? next.delete(name) : next.set(name, value))),
    clear: () =>
      change((next) => {
        for (const name of names) next.delete(name);
      }),
  };
}

interface Props {
  readonly filters: RequestFilters;
  readonly set: (name: FilterName, value: string) => void;
  readonly clear: () => void;
  /** An API error that names the invalid filter. */
  readonly error: Error | null;
}

export function RequestFilterBar({ filters, set, clear, error }: Props) {
  const search = useRef<HTMLInputElement>(null);
  useShortcut("/", () => search.current?.focus());
  const errorOf = (name: FilterName) =>
    error instanceof ApiError && error.field === name ? error.detail : null;
  const field = (name: FilterName) => ({
    value: filters[name] ?? "",
    error: errorOf(name),
    onCommit: (value: string) => set(name, value.trim()),
  });
  return (
    <Group gap="xs" align="flex-start" role="search" aria-label="Filter requests">
      <TypedField {...field("q")}>
        {(props) => (
          <TextInput
            {...props}
            ref={search}
            type="search"
            aria-label="Search requests"
            placeholder="Path, reason, ID…"
            leftSection={<IconSearch size={16} />}
            style={{ flex: "2 1 12rem" }}
          />
        )}
      </TypedField>
      <TypedField {...field("status")}>
        {({ onChange, ...props }) => (
          <Autocomplete
            {...props}
            onChange={(value) => onChange({ currentTarget: { value } })}
            aria-label="Status"
            placeholder="Status"
            data={["2xx", "3xx", "4xx", "5xx", "400-599", "404", "429", "502,503,504"]}
            // The selected value must not filter the options.
            filter={({ options }) => options}
            style={{ flex: "1 1 6rem", maxWidth: "16rem" }}
          />
        )}
      </TypedField>
      <TypedField {...field("host")}>
        {(props) => (
          <TextInput {...props} aria-label="Host" placeholder="Host" style={{ flex: "1 1 8rem" }} />
        )}
      </TypedField>
      <RouteChoice
        value={filters["route"] ?? ""}
        onChange={(value) => set("route", value)}
        error={errorOf("route")}
      />
      <TypedField {...field("address")}>
        {(props) => (
          <TextInput
            {...props}
            aria-label="Client address or network"
            placeholder="Client, 10.0.0.0/8"
            style={{ flex: "1 1 9rem" }}
          />
        )}
      </TypedField>
      <CacheChoice
        value={filters["cache"] ?? ""}
        onChange={(value) => set("cache", value)}
        error={errorOf("cache")}
      />
      <TypedField {...field("grpc")}>
        {(props) => (
          <TextInput
            {...props}
            aria-label="gRPC status"
            placeholder="gRPC status"
            style={{ flex: "1 1 8rem" }}
          />
        )}
      </TypedField>
      <KindChoice value={filters["kind"] ?? null} onChange={(value) => set("kind", value ?? "")} />
      {Object.keys(filters).length > 0 && (
        <Button variant="subtle" color="gray" onClick={clear}>
          Clear
        </Button>
      )}
    </Group>
  );
}

interface KindProps {
  readonly value: string | null;
  readonly onChange: (value: string | null) => void;
}

const KindChoice = ({ value, onChange }: KindProps) => (
  <Select
    aria-label="Kind"
    placeholder="Kind"
    data={[
      { value: "http", label: "HTTP" },
      { value: "stream", label: "Streams" },
    ]}
    value={value}
    onChange={onChange}
    clearable
    style={{ flex: "1 1 6rem" }}
  />
);

interface TypedProps {
  readonly value: string;
  readonly error: string | null;
  readonly onCommit: (value: string) => void;
  readonly children: (props: {
    readonly value: string;
    readonly error: string | null;
    readonly onChange: (event: { readonly currentTarget: { readonly value: string } }) => void;
  }) => React.ReactNode;
}

/** Commits after a pause in typing: each change sends a request. */
function TypedField({ value, error, onCommit, children }: TypedProps) {
  const [text, setText] = useState(value);
  const commit = useDebouncedCallback(onCommit, 400);
  // Changed from outside: by the URL or by Clear.
  useEffect(() => setText((typed) => (typed.trim() === value ? typed : value)), [value]);
  return children({
    value: text,
    error,
    onChange: ({ currentTarget }) => {
      setText(currentTarget.value);
      commit(currentTarget.value);
    },
  });
}

const cacheStatuses = ["hit", "stale", "revalidated", "miss", "expired", "bypass"];

function CacheChoice({ value, onChange, error }: ChoiceProps) {
  // The URL may contain a reason.
  const data =
    value === "" || cacheStatuses.includes(value) ? cacheStatuses : [...cacheStatuses, value];
  return (
    <Select
      aria-label="Cache"
      placeholder="Cache"
      data={data}
      value={value === "" ? null : value}
      onChange={(next) => onChange(next ?? "")}
      error={error}
      clearable
      style={{ flex: "1 1 7rem", maxWidth: "16rem" }}
    />
  );
}

interface ChoiceProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly error: string | null;
}

function RouteChoice({ value, onChange, error }: ChoiceProps) {
  const routes = useResourceList("routes");
  const streams = useResourceList("stream-routes");
  const known = [...(routes.data ?? []), ...(streams.data ?? [])].map((route) => ({
    value: route.id,
    label: nameOf(route),
  }));
  // The URL may contain a name instead of an id, and deleted routes still have requests.
  const chosen = known.find((route) => route.value === value || route.label === value);
  const data = value !== "" && chosen === undefined ? [...known, { value, label: value }] : known;
  return (
    <Select
      aria-label="Route"
      placeholder="Route"
      data={data}
      value={value === "" ? null : (chosen?.value ?? value)}
      onChange={(next) => onChange(next ?? "")}
      error={error}
      searchable
      clearable
      limit={100}
      nothingFoundMessage="No matches"
      style={{ flex: "1 1 8rem", maxWidth: "16rem" }}
    />
  );
}
