// Which requests a route takes: hosts and paths, as everybody needs them; knows no service.
import { Alert, Code, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { AddButton, ListField, RemoveButton } from "../../parts/fields.tsx";
import { SubHead } from "../../parts/folded-section.tsx";
import { Section } from "../../parts/page-layout.tsx";
import type { RouteFieldsProps } from "./route-form.tsx";
import { type PathMatch, takesPath } from "./route-text.ts";
import { newPath } from "./route-values.ts";

export function MatchFields({ form }: RouteFieldsProps) {
  const { hosts, paths } = form.values;
  const isEverything = hosts.length === 0 && paths.every(({ value }) => value === "");
  return (
    <Section
      title="Which requests it takes"
      text="A request has to fit all of it: one of the hosts, one of the paths, and every condition."
    >
      <Stack>
        <ListField
          label="Hosts"
          description="The names in the address bar, such as shop.example.com; *.example.com takes every name below. Empty: any"
          placeholder={hosts.length === 0 ? "shop.example.com" : "another one"}
          {...form.getInputProps("hosts")}
        />
        <PathFields form={form} />
        {isEverything && (
          <Alert color="yellow" title="It takes every request">
            Without a host and a path it takes whatever no other route takes. That is right for a
            catch-all; otherwise say at least a host.
          </Alert>
        )}
      </Stack>
    </Section>
  );
}

const TYPES = [
  { value: "prefix", label: "Starts with" },
  { value: "exact", label: "Is exactly" },
  { value: "regex", label: "Matches" },
];

const examples: Readonly<Record<PathMatch["type"], string>> = {
  prefix: "/shop",
  exact: "/health",
  regex: "^/users/[0-9]+$",
};

/** What the row takes, with an example that it does not. */
function meaningOf({ type, value }: PathMatch): string {
  const shown = value === "" ? examples[type] : value;
  const bare = shown.replace(/\/$/, "");
  switch (type) {
    case "prefix":
      return bare === ""
        ? "Every path."
        : `Takes ${bare}, ${bare}/ and ${bare}/anything, but not ${bare}ping.`;
    case "exact":
      return `Takes ${shown} and nothing below it.`;
    case "regex":
      return value === ""
        ? "A regular expression, compared anywhere in the path: ^ is its start, $ its end. ^/users/[0-9]+$ takes /users/42."
        : `Takes every path in which ${shown} is found${shown.startsWith("^") ? ", from its start" : ", anywhere"}.`;
    default:
      return type satisfies never;
  }
}

function PathFields({ form }: RouteFieldsProps) {
  const { paths } = form.values;
  return (
    <Stack gap="xs" role="group" aria-label="Paths">
      <SubHead
        title="Paths"
        text={paths.length === 0 ? "None: every path of these hosts." : "One of them has to fit."}
      />
      {paths.map((path, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have nothing else, and their fields hold no state
        <PathRow key={index} form={form} path={path} index={index} />
      ))}
      <AddButton label="Add a path" onClick={() => form.insertListItem("paths", newPath)} />
      {paths.some(({ value }) => value !== "") && <PathTrial paths={paths} />}
    </Stack>
  );
}

interface RowProps extends RouteFieldsProps {
  readonly path: PathMatch;
  readonly index: number;
}

function PathRow({ form, path, index }: RowProps) {
  const at = `paths.${index}`;
  return (
    <Group gap={6} align="flex-start" wrap="nowrap">
      <Group gap={6} align="flex-start" style={{ flex: 1 }}>
        <Select
          aria-label={`Kind of path ${index + 1}`}
          data={TYPES}
          allowDeselect={false}
          style={{ flex: "0 0 9rem" }}
          {...form.getInputProps(`${at}.type`)}
          onChange={(type) => {
            form.setFieldValue(at, { ...path, type: type as PathMatch["type"] });
            form.clearFieldError(`${at}.value`);
          }}
        />
        <TextInput
          aria-label={`Path ${index + 1}`}
          placeholder={examples[path.type]}
          style={{ flex: "1 1 14rem" }}
          styles={{
            input: { fontFamily: "var(--mantine-font-family-monospace)" },
            description: { overflowWrap: "anywhere" },
          }}
          {...form.getInputProps(`${at}.value`)}
          error={form.errors[`${at}.value`] ?? form.errors[at]}
          description={meaningOf(path)}
          inputWrapperOrder={["label", "input", "error", "description"]}
        />
      </Group>
      <RemoveButton
        label={`Remove path ${index + 1}`}
        onClick={() => form.removeListItem("paths", index)}
      />
    </Group>
  );
}

/** Answers at once whether a path would fit; hosts and conditions are for the test of the whole request. */
function PathTrial({ paths }: { readonly paths: readonly PathMatch[] }) {
  const [tried, setTried] = useState("");
  const path = tried === "" || tried.startsWith("/") ? tried : `/${tried}`;
  const fitting = paths.findIndex((match) => match.value !== "" && takesPath(match, path) === true);
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        label="Try a path"
        placeholder="/shop/cart"
        size="xs"
        value={tried}
        onChange={(event) => setTried(event.currentTarget.value)}
        style={{ flex: "0 1 16rem" }}
      />
      <Text size="sm" c="dimmed" pb={5} aria-live="polite">
        {path === "" ? (
          "is it taken?"
        ) : fitting === -1 ? (
          <>
            <Code>{path}</Code> is not taken
          </>
        ) : (
          <>
            <Code>{path}</Code> is taken by path {fitting + 1}
          </>
        )}
      </Text>
    </Group>
  );
}
