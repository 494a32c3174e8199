// Renders the page of a path, or why there is none; knows no page by name.
import { Anchor, Container, Stack, Text, Title } from "@mantine/core";
import { type ComponentType, lazy, type ReactNode, useContext, useEffect } from "react";
import { Link, Redirect } from "wouter";
import { includesRole, ReadOnlyContext } from "../api/queries.ts";
import { resources, type Role } from "../api/resources.ts";
import { pagePath } from "../page-path.ts";
import { type PageEntry, type PageProps, pages } from "../pages.ts";
import { matchPage, similarPages } from "./page-match.ts";

/** Each page loads once; React distinguishes lazy components by identity. */
const components: ReadonlyMap<PageEntry, ComponentType<PageProps>> = new Map(
  pages.map((page) => [page, lazy(() => loaded(page.load))]),
);

const RETRY_MS = 3000;

/** Waits for a gateway that is away; one that responds twice without the file was upgraded. */
async function loaded<T>(load: () => Promise<T>, mayBeBack = true): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const responds = await fetch("/api/v1/admin/status").then(
      () => true,
      () => false,
    );
    if (responds && !mayBeBack) throw error;
    await new Promise((done) => setTimeout(done, RETRY_MS));
    return await loaded(load, !responds);
  }
}

/** The resource of a page; null: a page without objects. */
const resourceOf = ({ path }: PageEntry) =>
  Object.entries(resources).find(([key]) => key.replace("/", "-") === path)?.[1] ?? null;

export function PageSwitch({ path, role }: { readonly path: string; readonly role: Role }) {
  const isReadOnly = useContext(ReadOnlyContext);
  const match = matchPage(path);
  const title = match?.page.title ?? "Not found";
  useEffect(() => {
    document.title = `${title} · Sluice`;
  }, [title]);
  const moved = pages.find(({ former }) => former !== undefined && path === pagePath(former));
  if (moved !== undefined) return <Redirect to={pagePath(moved.path)} replace />;
  if (match === null) return <NotFound path={path} role={role} />;
  if (!includesRole(role, match.page.role))
    return (
      <Message
        title={match.page.title}
        text={`This page needs the role ${match.page.role}; yours is ${role}.`}
      />
    );
  const needed = match.id === "new" ? (resourceOf(match.page)?.writes ?? "viewer") : "viewer";
  if (!includesRole(role, needed) || (isReadOnly && needed !== "viewer"))
    return (
      <Message
        title={match.page.title}
        text={
          isReadOnly
            ? "A configuration file manages the gateway: objects are created there."
            : `Creating objects here needs the role ${needed}; yours is ${role}.`
        }
      >
        <Anchor component={Link} href={pagePath(match.page.path)}>
          Show the list
        </Anchor>
      </Message>
    );
  const Page = components.get(match.page);
  return Page === undefined ? null : <Page id={match.id} part={match.part} />;
}

function NotFound({ path, role }: { readonly path: string; readonly role: Role }) {
  const similar = similarPages(path).filter((page) => includesRole(role, page.role));
  return (
    <Message title="Page not found" text={`There is no page at ${path}. Check the URL.`}>
      {similar.map((page) => (
        <Anchor key={page.path} component={Link} href={pagePath(page.path)}>
          {page.title}
        </Anchor>
      ))}
    </Message>
  );
}

interface MessageProps {
  readonly title: string;
  readonly text: string;
  /** Links to other pages. */
  readonly children?: ReactNode;
}

function Message({ title, text, children }: MessageProps) {
  return (
    <Container size="xs" py="xl">
      <Stack gap="xs">
        <Title order={1} size="h3">
          {title}
        </Title>
        <Text c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {text}
        </Text>
        {children}
        <Anchor component={Link} href="/">
          Go to the dashboard
        </Anchor>
      </Stack>
    </Container>
  );
}
