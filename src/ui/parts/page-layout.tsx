// The layout parts of pages: head, sections, help and role checks; knows no page.
import { Anchor, Breadcrumbs, Card, Group, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useContext } from "react";
import { Link } from "wouter";
import { includesRole, ReadOnlyContext, useRole } from "../api/queries.ts";
import type { Role } from "../api/resources.ts";

interface PageHeadProps {
  readonly title: ReactNode;
  /** One sentence about the purpose. */
  readonly text?: ReactNode;
  /** Buttons. */
  readonly actions?: ReactNode;
  /** The parent page: `{ href: "/ui/services", label: "Services" }`. */
  readonly parent?: { readonly href: string; readonly label: string };
}

/** Title, purpose and actions. */
export function PageHead({ title, text, actions, parent }: PageHeadProps) {
  return (
    <Group justify="space-between" align="flex-start" mb="md" gap="sm">
      <Stack gap={2} style={{ minWidth: 0, flex: "1 1 16rem" }}>
        {parent !== undefined && (
          <Breadcrumbs>
            <Anchor component={Link} href={parent.href} size="sm">
              {parent.label}
            </Anchor>
          </Breadcrumbs>
        )}
        <Title order={1} size="h2" style={{ overflowWrap: "anywhere" }}>
          {title}
        </Title>
        {text !== undefined && <Text c="dimmed">{text}</Text>}
      </Stack>
      {actions !== undefined && <Group gap="xs">{actions}</Group>}
    </Group>
  );
}

interface SectionProps {
  readonly title: string;
  readonly text?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A card with a heading. */
export function Section({ title, text, actions, children }: SectionProps) {
  return (
    <Card withBorder component="section" aria-label={title} mb="md" p={{ base: "sm", sm: "lg" }}>
      <Group justify="space-between" mb="sm" align="flex-start">
        <Stack gap={0} style={{ minWidth: 0, flex: "1 1 12rem" }}>
          <Title order={2} size="h4">
            {title}
          </Title>
          {text !== undefined && <HelpText>{text}</HelpText>}
        </Stack>
        {actions}
      </Group>
      {children}
    </Card>
  );
}

/** An explanation in secondary text color. */
export function HelpText({ children }: { readonly children: ReactNode }) {
  return (
    <Text size="sm" c="dimmed">
      {children}
    </Text>
  );
}

/** Renders its children only for permitted roles, so that no visible button is rejected. */
export function Can({
  needs,
  children,
  otherwise = null,
  worksReadOnly = false,
}: {
  /** Least role. */
  readonly needs: Role;
  readonly children: ReactNode;
  readonly otherwise?: ReactNode;
  /** Whether it changes no configuration, so that it works while a file manages the configuration. */
  readonly worksReadOnly?: boolean;
}) {
  const isReadOnly = useContext(ReadOnlyContext) && !worksReadOnly && needs !== "viewer";
  return includesRole(useRole(), needs) && !isReadOnly ? children : otherwise;
}

/** A row with a name and a value. */
export function Fact({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ReactNode;
}) {
  return (
    <Group gap="sm" wrap="nowrap" align="baseline">
      <Text size="sm" c="dimmed" w={150} style={{ flexShrink: 0 }}>
        {label}
      </Text>
      <Text size="sm" component="div" style={{ overflowWrap: "anywhere", minWidth: 0 }}>
        {children}
      </Text>
    </Group>
  );
}
