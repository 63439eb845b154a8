FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No production dependency needs its install script. Only the sandbox needs the optional ones.
RUN npm ci --omit=dev --omit=optional --ignore-scripts

FROM node:24-slim AS sandbox-packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --ignore-scripts

FROM node:24-slim AS program
WORKDIR /app
COPY package.json ./
COPY src src
COPY docs/errors.md docs/errors.md
# The image's user `node`. A number, so that an orchestrator can verify that it is not root.
USER 1000:1000

# Only with `--target sandbox`: the chain and the social network of compose.sandbox.yaml.
FROM program AS sandbox
COPY --from=sandbox-packages /app/node_modules node_modules
EXPOSE 8898 8899
CMD ["node", "src/start.js", "sandbox"]

FROM program
ENV NODE_ENV=production HOST=0.0.0.0
COPY --from=packages /app/node_modules node_modules
EXPOSE 4000
# Not /readyz: an orchestrator would replace containers that stop with transactions in flight.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 4000) + (process.env.BASE_PATH || '') + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The flags of `npm start`. docs/measurements.md says why.
CMD ["node", "--no-allocation-site-pretenuring", "--no-maglev", "--no-memory-reducer", "--heap-growing-percent=20", "--v8-pool-size=1", "--max-semi-space-size=16", "--max-old-space-size=512", "src/start.js"]
