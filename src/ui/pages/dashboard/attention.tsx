// What needs attention: one entry per cause, with its objects and the action that resolves it for all of them.
import { Anchor, Button, Group, Stack, Text } from "@mantine/core";
import { modals } from "@mantine/modals";
import { IconCircleCheck } from "@tabler/icons-react";
import { useState } from "react";
import { Link } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useResourceList, useStatus } from "../../api/queries.ts";
import { Can, Section } from "../../parts/page-layout.tsx";
import { RelativeTime, StatusMark } from "../../parts/status.tsx";
import {
  type AttentionAction,
  type AttentionGroup,
  type AttentionItem,
  attentionGroups,
} from "./attention-groups.ts";

/** Undefined while loading; a list that cannot be loaded counts as empty. */
export function useAttention(): readonly AttentionGroup[] | undefined {
  const status = useStatus();
  const certificates = useResourceList("certificates");
  const accounts = useResourceList("acme/accounts");
  const targets = useResourceList("targets");
  const services = useResourceList("services");
  if ([status, certificates, accounts, targets, services].some(({ isPending }) => isPending))
    return undefined;
  return attentionGroups({
    warnings: status.data?.warnings ?? [],
    unbound: status.data?.unbound_ports ?? [],
    certificates: certificates.data ?? [],
    accounts: accounts.data ?? [],
    targets: targets.data ?? [],
    services: new Map(services.data?.map(({ id, name }) => [id, name])),
    now: Date.now(),
  });
}

export function Attention({ groups }: { readonly groups: readonly AttentionGroup[] }) {
  return (
    <Section title="Needs attention">
      {groups.length === 0 ? (
        <Group gap="xs" wrap="nowrap">
          <IconCircleCheck size={18} color="var(--mantine-color-teal-6)" aria-hidden="true" />
          <Text size="sm" c="dimmed">
            No taken ports, no unhealthy targets, no failed or expiring certificates, no warnings.
          </Text>
        </Group>
      ) : (
        <Stack gap="xs">
          {groups.map((group) => (
            <Entry key={group.title} group={group} />
          ))}
        </Stack>
      )}
    </Section>
  );
}

const SHOWN = 3;

function Entry({ group }: { readonly group: AttentionGroup }) {
  const { title, tone, advice, items, action } = group;
  const [isOpen, setOpen] = useState(false);
  const shown = isOpen ? items : items.slice(0, SHOWN);
  return (
    <Group className="line" pb="xs" gap="sm" align="flex-start" justify="space-between">
      <Group gap="xs" wrap="nowrap" align="baseline" style={{ flex: "1 1 16rem", minWidth: 0 }}>
        <StatusMark tone={tone} />
        <Stack gap={2} align="flex-start" style={{ minWidth: 0, overflowWrap: "anywhere" }}>
          <Text size="sm" fw={600}>
            {title}
          </Text>
          {advice !== null && <Text size="sm">{advice}</Text>}
          {shown.map((item) => (
            <Item key={`${item.href} ${item.label}`} item={item} />
          ))}
          {items.length > SHOWN && (
            <Anchor component="button" type="button" size="xs" onClick={() => setOpen(!isOpen)}>
              {isOpen ? "Show fewer" : `Show all ${items.length}`}
            </Anchor>
          )}
        </Stack>
      </Group>
      {action !== null && <Action action={action} />}
    </Group>
  );
}

function Item({ item }: { readonly item: AttentionItem }) {
  const { label, href, detail, at } = item;
  return (
    <Text size="xs" c="dimmed">
      {href === null ? (
        label
      ) : (
        <Anchor component={Link} href={href} size="xs" underline="always">
          {label}
        </Anchor>
      )}
      {detail !== null && ` ${detail}`}
      {at !== null && (
        <>
          {" "}
          <RelativeTime at={at} />
        </>
      )}
    </Text>
  );
}

function Action({ action }: { readonly action: AttentionAction }) {
  if (action.kind === "link") {
    const button = (
      <Button component={Link} href={action.href} size="xs" variant="default">
        {action.label}
      </Button>
    );
    return action.needs === "viewer" ? button : <Can needs={action.needs}>{button}</Can>;
  }
  return (
    <Can needs="editor">
      <CertificateAction action={action} />
    </Can>
  );
}

/** Agrees to the terms of an account, if that is the cause, and requests each certificate anew. */
function CertificateAction({
  action,
}: {
  readonly action: Exclude<AttentionAction, { kind: "link" }>;
}) {
  const connection = useConnection();
  const { ids } = action;
  const many = ids.length === 1 ? "1 certificate" : `${ids.length} certificates`;
  const { mutate, isPending } = useChange({
    send: async () => {
      const agreed =
        action.kind === "agree"
          ? await connection.send<unknown>(`/acme/accounts/${action.account.id}`, {
              method: "PATCH",
              body: { terms_agreed: true },
            })
          : null;
      const requested = await Promise.all(
        ids.map((id) => connection.send<unknown>(`/certificates/${id}/renew`, { method: "POST" })),
      );
      const last = agreed ?? requested[0];
      if (last === undefined) throw new Error("there is nothing to request");
      return last;
    },
    touches: ["certificates", "acme/accounts"],
    done: () => `${many} requested`,
  });
  if (action.kind === "retry")
    return (
      <Button size="xs" variant="default" loading={isPending} onClick={() => mutate()}>
        {ids.length === 1 ? "Retry now" : `Retry all ${ids.length}`}
      </Button>
    );
  const { account } = action;
  const { host } = new URL(account.directory_url);
  const ask = () =>
    modals.openConfirmModal({
      title: `Agree to the terms of service for ${many}?`,
      children: (
        <Text size="sm">
          You agree to the terms of service of the CA at {host}, for the ACME account {account.name}
          . The gateway then requests {many}.
        </Text>
      ),
      labels: { confirm: "Agree and request", cancel: "Cancel" },
      onConfirm: () => mutate(),
    });
  return (
    <Button size="xs" loading={isPending} onClick={ask}>
      Agree to the terms for {many}
    </Button>
  );
}
