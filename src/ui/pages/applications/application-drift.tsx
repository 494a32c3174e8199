// What was changed by hand about the parts of an application, and the two ways out: take it back, or accept it.
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
  /** The form is to show what there is now. */
  readonly onSettled: () => void;
}

type Drift = Props["application"]["drift"][number];

/** Nothing when all is as the application made it. */
export function ApplicationDrift({ application, onSettled }: Props) {
  const { drift } = application;
  if (drift.length === 0) return null;
  const isAcceptable = drift.some(({ field }) => field !== null);
  return (
    <Section
      title="Changed by hand"
      text="Something differs from what the application made. It stays like that until you decide."
      actions={<StatusBadge state={count(drift.length)} tone="warn" />}
    >
      <Stack gap="sm">
        <Table.ScrollContainer minWidth={520}>
          <Table layout="fixed" withRowBorders>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>What</Table.Th>
                <Table.Th>As it was made</Table.Th>
                <Table.Th>As it is</Table.Th>
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
          <Settle application={application} isAcceptable={isAcceptable} onSettled={onSettled} />
        </Can>
      </Stack>
    </Section>
  );
}

const count = (length: number): string => (length === 1 ? "1 difference" : `${length} differences`);

const pages: Readonly<Record<string, string>> = {
  ...{ service: "services", target: "services", route: "routes", plugin: "plugins" },
  certificate: "certificates",
};

function DriftRow({ line }: { readonly line: Drift }) {
  const { kind, id, name, field, expected, found } = line;
  const page = pages[kind];
  const isGone = field === null && found === null;
  const title = `${kind} ${name ?? ""}`.trim();
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
        {field === null ? (expected === null ? "not there" : "there") : brief(expected)}
      </Table.Td>
      <Table.Td className="mono">
        {field === null ? (isGone ? "deleted" : "added by hand") : brief(found)}
      </Table.Td>
    </Table.Tr>
  );
}

function Settle({
  application,
  isAcceptable,
  onSettled,
}: Props & { readonly isAcceptable: boolean }) {
  const { id, name } = application;
  const connection = useConnection();
  const { mutate, isPending } = useChange<Read<"applications">, "force" | "adopt">({
    send: (how) =>
      connection.send(`/applications/${id}`, { method: "PATCH", body: {}, query: { [how]: 1 } }),
    touches: ["applications"],
    done: (_, how) =>
      how === "force" ? `Application ${name} is as it was made` : `Changes to ${name} accepted`,
  });
  const run = (how: "force" | "adopt") => mutate(how, { onSuccess: onSettled });
  const ask = () =>
    modals.openConfirmModal({
      title: "Take the changes back?",
      children: (
        <Text size="sm">
          All that is listed becomes what the application made: fields, deleted parts and servers
          that were added.
        </Text>
      ),
      labels: { confirm: "Take back", cancel: "Cancel" },
      onConfirm: () => run("force"),
    });
  return (
    <Group gap="sm">
      <Button size="xs" onClick={ask} loading={isPending}>
        Take it back
      </Button>
      {isAcceptable && (
        <Button size="xs" variant="default" onClick={() => run("adopt")} loading={isPending}>
          Accept it
        </Button>
      )}
    </Group>
  );
}
