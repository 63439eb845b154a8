FROM node:24-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Nothing that runs needs an install script.
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim
ENV NODE_ENV=production HOST=0.0.0.0
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY src src
COPY docs/errors.md docs/errors.md
# The image's user `node`, as a number, by which an orchestrator sees that it is not root.
USER 1000:1000
EXPOSE 4000
# Not /readyz: whoever replaces a container that is not healthy would end transactions because the chain is away.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 4000) + (process.env.BASE_PATH || '') + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "src/main.ts"]
