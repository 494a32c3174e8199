// The drift of an application's objects, and the two ways to resolve it: revert, or accept.
import { Anchor, Button, Group, Stack, Table, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { Link } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { Can, Section } from "../../parts/page-layout.tsx";
import { StatusBadge } from "../../parts/status.tsx";
import { brief } from "./plan-step.tsx";

interface Props {
  readonly application: Read<"applications">;
  /** Lets the form reload the stored object. */
  readonly onResolved: () => void;
}

type Drift = Props["application"]["drift"][number];

/** Renders nothing without drift. */
export function ApplicationDrift({ application, onResolved }: Props) {
  const { drift } = application;
  if (drift.length === 0) return null;
  const isAcceptable = drift.some(({ field }) => field !== null);
  return (
    <Section
      title="Drift"
      text="These objects were changed outside of the application. Revert the changes or accept them."
      actions={<StatusBadge state={count(drift.length)} tone="warn" />}
    >
      <Stack gap="sm">
        <Table.ScrollContainer minWidth={520}>
          <Table layout="fixed" withRowBorders>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Object</Table.Th>
                <Table.Th>Expected</Table.Th>
                <Table.Th>Found</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {drift.map((line) => (
                <DriftRow key={`${line.id} ${line.field}`} line={line} />
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
        <Can needs="editor">
          <ResolveDrift
            application={application}
            isAcceptable={isAcceptable}
            onResolved={onResolved}
          />
        </Can>
      </Stack>
    </Section>
  );
}

const count = (length: number): string => (length === 1 ? "1 difference" : `${length} differences`);

const pages: Readonly<Record<string, string>> = {
  service: "services",
  target: "services",
  route: "routes",
  plugin: "plugins",
  certificate: "certificates",
};

function DriftRow({ line }: { readonly line: Drift }) {
  const { kind, id, name, field, expected, found } = line;
  const page = pages[kind];
  const isGone = field === null && found === null;
  const title = `${kind === "plugin" ? "policy" : kind} ${name ?? ""}`.trim();
  return (
    <Table.Tr style={{ overflowWrap: "anywhere", verticalAlign: "top" }}>
      <Table.Td>
        {page === undefined || isGone || kind === "target" ? (
          title
        ) : (
          <Anchor component={Link} href={pagePath(page, id)} size="sm">
            {title}
          </Anchor>
        )}
        {field !== null && (
          <Text size="xs" className="mono">
            {field}
          </Text>
        )}
      </Table.Td>
      <Table.Td className="mono">
        {field === null ? (expected === null ? "missing" : "present") : brief(expected)}
      </Table.Td>
      <Table.Td className="mono">
        {field === null ? (isGone ? "deleted" : "added by hand") : brief(found)}
      </Table.Td>
    </Table.Tr>
  );
}

function ResolveDrift({
  application,
  isAcceptable,
  onResolved,
}: Props & { readonly isAcceptable: boolean }) {
  const { id, name } = application;
  const connection = useConnection();
  const { mutate, isPending } = useChange<Read<"applications">, "force" | "adopt">({
    send: (how) =>
      connection.send(`/applications/${id}`, { method: "PATCH", body: {}, query: { [how]: 1 } }),
    touches: ["applications"],
    done: (_, how) =>
      how === "force" ? `Application ${name} reverted` : `Changes to ${name} accepted`,
  });
  const run = (how: "force" | "adopt") => mutate(how, { onSuccess: onResolved });
  const ask = () =>
    modals.openConfirmModal({
      title: "Revert the changes?",
      children: (
        <Text size="sm">
          The gateway restores every listed field and deleted object, and removes added servers.
        </Text>
      ),
      labels: { confirm: "Revert", cancel: "Cancel" },
      onConfirm: () => run("force"),
    });
  return (
    <Group gap="sm">
      <Button size="xs" onClick={ask} loading={isPending}>
        Revert changes
      </Button>
      {isAcceptable && (
        <Button size="xs" variant="default" onClick={() => run("adopt")} loading={isPending}>
          Accept changes
        </Button>
      )}
    </Group>
  );
}
