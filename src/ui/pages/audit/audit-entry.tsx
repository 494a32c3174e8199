// One entry of the audit log in full: the state before and after, or why it was refused; changes nothing.
import { Anchor, Code, Drawer, Group, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { capitalised } from "../../api/changes.tsx";
import { type Document, isDocument } from "../../api/merge-patch.ts";
import type { Schemas } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { type FieldChange, FieldDiff } from "../../parts/field-diff.tsx";
import { pageOf, wordOf } from "../../parts/object-page.ts";
import { Fact } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusDot } from "../../parts/status.tsx";
import { sentenceOf } from "./audit-rows.tsx";

type Entry = Schemas["AuditEntry"];

interface Props {
  readonly entry: Entry | null;
  readonly onClose: () => void;
}

export function AuditDrawer({ entry, onClose }: Props) {
  return (
    <Drawer
      opened={entry !== null}
      onClose={onClose}
      position="right"
      size="lg"
      title={entry === null ? "" : capitalised(`${sentenceOf(entry)} ${entry.object_name ?? ""}`)}
    >
      {entry !== null && <Detail entry={entry} />}
    </Drawer>
  );
}

const methods: Readonly<Record<Entry["method"], string>> = {
  session: "browser session",
  token: "token",
  local: "local command",
  disabled: "no authentication: no users existed",
  none: "unknown",
};

function Detail({ entry }: { readonly entry: Entry }) {
  const { at, actor, method, address, action, kind, object_id: id, result, revision } = entry;
  const page = action === "delete" ? null : pageOf(kind, id);
  return (
    <Stack gap="lg">
      <Stack gap={6}>
        <Fact label="When">
          {new Date(at).toLocaleString()} (<RelativeTime at={at} />)
        </Fact>
        <Fact label="Who">
          {actor}
          <Text size="xs" c="dimmed">
            {methods[method]}
          </Text>
        </Fact>
        <Fact label="From">{address === "" ? "this machine" : address}</Fact>
        <Fact label="Result">
          <StatusDot state={result} />
        </Fact>
        {id !== null && (
          <Fact label="Object">
            <span className="mono">{id}</span>
            <Group gap="sm">
              {page !== null && (
                <Anchor component={Link} href={page} size="sm">
                  Open the {wordOf(kind)}
                </Anchor>
              )}
              <Anchor component={Link} href={`${pagePath("audit-log")}?object=${id}`} size="sm">
                History of this object
              </Anchor>
            </Group>
          </Fact>
        )}
        {revision !== null && (
          <Fact label="Revision">
            <Anchor component={Link} href={pagePath("revisions", String(revision))} size="sm">
              {revision}
            </Anchor>
          </Fact>
        )}
      </Stack>
      <What entry={entry} />
    </Stack>
  );
}

function What({ entry: { detail, result } }: { readonly entry: Entry }) {
  if (!isDocument(detail)) return null;
  const { before, after, diff } = detail;
  if (Array.isArray(diff))
    return (
      <Part title="Changes">
        <FieldDiff fields={diff as FieldChange[]} sides="both" isNarrow />
      </Part>
    );
  if (isDocument(after))
    return (
      <Part title="Added">
        <FieldDiff fields={fieldsOf(after, "after")} sides="after" isNarrow />
      </Part>
    );
  if (isDocument(before))
    return (
      <Part title="Removed">
        <FieldDiff fields={fieldsOf(before, "before")} sides="before" isNarrow />
      </Part>
    );
  return (
    <Part title={result === "ok" ? "Details" : "Why"}>
      <Stack gap={6}>
        {Object.entries(detail).map(([name, value]) => (
          <Fact key={name} label={name.replaceAll("_", " ")}>
            {typeof value === "string" ? value : <Code>{JSON.stringify(value)}</Code>}
          </Fact>
        ))}
      </Stack>
    </Part>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div>
      <Title order={3} size="h5" mb={6}>
        {title}
      </Title>
      {children}
    </div>
  );
}

/** Non-empty fields, each by its path. */
function fieldsOf(object: Document, side: "before" | "after", prefix = ""): FieldChange[] {
  return Object.entries(object).flatMap(([name, value]): FieldChange[] => {
    const path = `${prefix}${name}`;
    if (isDocument(value)) return fieldsOf(value, side, `${path}.`);
    if (value === null || value === "" || (Array.isArray(value) && value.length === 0)) return [];
    return [{ path, before: null, after: null, [side]: value }];
  });
}
