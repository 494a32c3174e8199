// Matches a path against the table of pages and renders the page; knows no page by name.
import { Anchor, Container, Stack, Text, Title } from "@mantine/core";
import { type ComponentType, lazy, useEffect } from "react";
import { Link } from "wouter";
import { includesRole } from "../api/queries.ts";
import type { Role } from "../api/resources.ts";
import { type PageEntry, type PageProps, pages } from "../pages.ts";

/** Each page loads once; React distinguishes lazy components by identity. */
const components: ReadonlyMap<PageEntry, ComponentType<PageProps>> = new Map(
  pages.map((page) => [page, lazy(page.load)]),
);

interface PageMatch extends PageProps {
  readonly page: PageEntry;
}

/** Parses `/ui/PAGE/ID/PART`; null: unknown page. */
function matchPage(path: string): PageMatch | null {
  const [, prefix = "", name = "", id = null, part = null, ...rest] = path
    .replace(/\/$/, "")
    .split("/")
    .map((word) => decodeURIComponent(word));
  if (rest.length > 0 || (prefix !== "" && prefix !== "ui")) return null;
  const page = pages.find((entry) => entry.path === name);
  return page === undefined ? null : { page, id, part };
}

export function PageSwitch({ path, role }: { readonly path: string; readonly role: Role }) {
  const match = matchPage(path);
  const title = match?.page.title ?? "Not found";
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  if (match === null)
    return <Message title="Page not found" text="The URL may be outdated or mistyped." />;
  if (!includesRole(role, match.page.role))
    return (
      <Message
        title={match.page.title}
        text={`This page needs the role ${match.page.role}; yours is ${role}.`}
      />
    );
  const Page = components.get(match.page);
  return Page === undefined ? null : <Page id={match.id} part={match.part} />;
}

function Message({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <Container size="xs" py="xl">
      <Stack gap="xs">
        <Title order={1} size="h3">
          {title}
        </Title>
        <Text c="dimmed">{text}</Text>
        <Anchor component={Link} href="/">
          Go to the dashboard
        </Anchor>
      </Stack>
    </Container>
  );
}
